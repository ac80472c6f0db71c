<?php

declare(strict_types=1);

namespace Weft\Tests\Cli;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

final class ListenerTest extends TestCase
{
    /** Seconds. It only ends a hang. */
    private const DEADLINE = 60;
    /** Seconds. A worker waits for 10 ms before it takes a connection that another one has not accepted. */
    private const MOST_PER_CONNECTION = 0.02;

    public function testAConnectionThatNoWorkerHasAcceptedWaitsForTheNextOne(): void
    {
        $address = self::freeAddress();
        $app = self::server($address);
        $run = new Supervised($app->file);
        $worker = $run->wait('is ready')['pid'];
        $run->signal(\SIGSTOP);
        \posix_kill($worker, \SIGKILL);
        // Nobody is there to accept it: the supervisor, who starts the next worker, stands still.
        $connection = \stream_socket_client("tcp://$address", $code, $error, self::DEADLINE);
        \fwrite($connection, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        $run->signal(\SIGCONT);

        \stream_set_timeout($connection, self::DEADLINE);
        self::assertStringStartsWith('HTTP/1.1 200 OK', (string) \stream_get_contents($connection));
    }

    public function testAnAddressThatNewCodeDoesNotUseIsClosedAfterTheReload(): void
    {
        [$old, $new] = [self::freeAddress(), self::freeAddress()];
        $app = self::server($old);
        $run = new Supervised($app->file);
        $run->wait('is ready');
        self::assertSame('1', self::get($old));
        \file_put_contents($app->file, \str_replace($old, $new, (string) \file_get_contents($app->file)));
        $run->signal(\SIGHUP);
        $run->wait('reload finished');

        self::assertSame('1', self::get($new));
        self::assertFalse(@\stream_socket_client("tcp://$old"));
    }

    /** @dataProvider overlappingAddresses */
    #[DataProvider('overlappingAddresses')]
    public function testAReloadWidensAndNarrowsAnAddressAndNoRequestIsLost(string $from, string $to, int $workers): void
    {
        $port = \explode(':', self::freeAddress())[1];
        $app = self::server("$from:$port");
        $run = new Supervised($app->file, ["--workers=$workers"]);
        for ($ready = 0; $ready < $workers; $ready++) {
            $run->wait('is ready');
        }
        $source = (string) \file_get_contents($app->file);
        foreach ([$to, $from, $to] as $reloads => $host) {
            \file_put_contents($app->file, \str_replace("$from:$port", "$host:$port", $source));
            $run->signal(\SIGHUP);
            for ($requests = 0; \count($run->all('reload finished')) <= $reloads; $requests++) {
                self::assertContains(self::get("127.0.0.1:$port"), ['1', '2'], "request $requests during the reload to $host");
                $run->look();
                self::assertSame([], $run->all('did not start'), $run->other);
            }
            self::assertContains(self::get("127.0.0.1:$port"), ['1', '2']);
            $other = @\stream_socket_client("tcp://127.0.0.2:$port");
            self::assertSame($host === '0.0.0.0', $other !== false);
        }
    }

    /** @return iterable<string, array{string, string, int}> */
    public static function overlappingAddresses(): iterable
    {
        foreach ([1, 2] as $workers) {
            yield "wider, $workers" => ['127.0.0.1', '0.0.0.0', $workers];
            yield "narrower, $workers" => ['0.0.0.0', '127.0.0.1', $workers];
        }
    }

    public function testAReloadToANarrowerAddressLosesNoRequestOfAWorkerThatIsReadyBeforeItAccepts(): void
    {
        $port = \explode(':', self::freeAddress())[1];
        $app = self::server("0.0.0.0:$port");
        $run = new Supervised($app->file);
        $run->wait('is ready');
        $source = \str_replace("0.0.0.0:$port", "127.0.0.1:$port", (string) \file_get_contents($app->file));
        \file_put_contents($app->file, \str_replace('async($server->run(...));', 'Worker::ready(); for ($until = microtime(true) + 0.5; microtime(true) < $until;); async($server->run(...));', $source));
        $run->signal(\SIGHUP);
        while ($run->all('reload finished') === []) {
            self::assertSame('1', self::get("127.0.0.1:$port"));
            $run->look();
        }

        self::assertSame('1', self::get("127.0.0.1:$port"));
    }

    public function testANarrowerAddressOfCodeThatDoesNotStartTakesNoConnections(): void
    {
        $port = \explode(':', self::freeAddress())[1];
        $app = self::server("0.0.0.0:$port");
        $run = new Supervised($app->file);
        $run->wait('is ready');
        $source = \str_replace("0.0.0.0:$port", "127.0.0.1:$port", (string) \file_get_contents($app->file));
        \file_put_contents($app->file, \str_replace('async($server->run(...));', 'exit(1);', $source));
        $run->signal(\SIGHUP);
        while ($run->all('did not start; the running workers stay') === []) {
            self::assertSame('1', self::get("127.0.0.1:$port"));
            $run->look();
        }

        self::assertSame('1', self::get("127.0.0.1:$port"));
    }

    public function testAllWorkersServeTheSameAddress(): void
    {
        $address = self::freeAddress();
        $app = self::server($address);
        $run = new Supervised($app->file, ['--workers=2', '--metrics=127.0.0.1:0']);
        $metrics = $run->wait('metrics')['address'];
        $run->wait('is ready');
        $run->wait('is ready');
        $served = [];
        $deadline = self::deadline();
        for ($i = 0; \count($served) < 2 && \microtime(true) < $deadline; $i++) {
            $served[self::get($address)] = true;
        }

        self::assertCount(2, $served, "one of the workers got none of $i connections");
        self::assertMatchesRegularExpression(
            '/^weft_http_requests_total\{worker="[12]",status="2xx"\} [1-9]/m',
            (string) \file_get_contents("http://$metrics/metrics"),
        );
    }

    public function testConnectionsAreSpreadOverTheWorkers(): void
    {
        $address = self::freeAddress();
        $app = self::server($address);
        $run = new Supervised($app->file, ['--workers=2']);
        $run->wait('is ready');
        $run->wait('is ready');
        $deadline = self::deadline();
        // A worker that a busy machine holds up for longer than the other one waits is helped by it: then it is counted again.
        do {
            $served = [1 => 0, 2 => 0];
            for ($i = 0; $i < 400; $i++) {
                $served[self::get($address)]++;
            }
            // Each falls to one or the other by chance: this is four times the standard deviation.
        } while (\abs($served[1] - 200) > 40 && \microtime(true) < $deadline);

        self::assertEqualsWithDelta(200, $served[1], 40);
    }

    public function testAWorkerThatDoesNotAcceptIsHelpedByTheOthers(): void
    {
        $address = self::freeAddress();
        $app = self::server($address);
        $run = new Supervised($app->file, ['--workers=3']);
        $pids = [];
        while (\count($pids) < 3) {
            $ready = $run->wait('is ready');
            $pids[$ready['worker']] = $ready['pid'];
        }
        \posix_kill($pids[1], \SIGSTOP);
        $slowest = 0.0;
        for ($i = 0; $i < 60; $i++) {
            $from = \microtime(true);
            self::assertContains(self::get($address), ['2', '3']);
            $slowest = \max($slowest, \microtime(true) - $from);
        }
        \posix_kill($pids[1], \SIGCONT);

        self::assertLessThan(self::DEADLINE, $slowest, 'nobody waits for the worker that stands still');
        $served = [];
        $deadline = self::deadline();
        while (!isset($served[1]) && \microtime(true) < $deadline) {
            $served[self::get($address)] = true;
        }
        self::assertArrayHasKey(1, $served, 'what goes on is given its share again');
    }

    public function testAPortThatOnlyOneWorkerListensOnIsServedByThatOne(): void
    {
        $address = self::freeAddress();
        $app = self::server($address, 'if (Worker::index() === 2)');
        $run = new Supervised($app->file, ['--workers=2']);
        $run->wait('is ready');
        $run->wait('is ready');
        $deadline = self::deadline();
        $seconds = [];
        // Half of the connections reach the socket of the other worker. A busy machine may hold up any of them, but not all rounds.
        do {
            $from = \microtime(true);
            for ($i = 0; $i < 20; $i++) {
                self::assertSame('2', self::get($address));
            }
            $seconds[] = \microtime(true) - $from;
        } while (\count($seconds) < 5 || (\min($seconds) > 20 * self::MOST_PER_CONNECTION && \microtime(true) < $deadline));

        self::assertLessThan(20 * self::MOST_PER_CONNECTION, \min($seconds));
    }

    public function testRequestsInFlightAreAnsweredDuringAReload(): void
    {
        $address = self::freeAddress();
        $app = self::server($address);
        $run = new Supervised($app->file);
        $run->wait('is ready');
        $connection = \stream_socket_client("tcp://$address", $code, $error, self::DEADLINE);
        \fwrite($connection, "GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
        $run->waitForOutput('working');
        $run->signal(\SIGHUP);
        $run->wait('reload finished');
        \touch("$app->directory/go");

        \stream_set_timeout($connection, self::DEADLINE);
        self::assertStringEndsWith("slow\n", (string) \stream_get_contents($connection));
        self::assertStringContainsString('exit code 0', $run->wait('ended')['message']);
    }

    public function testTwoServersThatLetTheSystemChooseThePortGetDifferentOnes(): void
    {
        $app = new Application('
            $ports = [];
            for ($i = 0; $i < 2; $i++) { $ports[] = (new Weft\Http\Server(new Weft\Http\Router()))->listen("127.0.0.1:0"); }
            fwrite(STDERR, implode(" ", $ports) . "\n");
            Worker::untilStopped();');
        $run = new Supervised($app->file, ['--workers=2']);
        $run->wait('is ready');
        $run->wait('is ready');
        $run->signal(\SIGTERM);
        $run->end();

        [$first, $second] = \explode("\n", \trim($run->other));
        self::assertSame($first, $second);
        self::assertCount(2, \array_unique(\explode(' ', $first)));
    }

    public function testAnAddressInUseIsTheWorkersFailureAndIsNamed(): void
    {
        $other = \stream_socket_server('tcp://127.0.0.1:0');
        $address = (string) \stream_socket_get_name($other, false);
        $app = self::server($address);
        $run = new Supervised($app->file, ['--max-crashes=1']);

        self::assertSame(1, $run->end());
        self::assertStringContainsString("cannot listen on $address: Address already in use", $run->other);
    }

    private static function get(string $address): string
    {
        $connection = \stream_socket_client("tcp://$address", $code, $error, self::DEADLINE);
        \fwrite($connection, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        \stream_set_timeout($connection, self::DEADLINE);

        return \explode("\r\n\r\n", (string) \stream_get_contents($connection), 2)[1] ?? '';
    }

    private static function server(string $address, string $condition = ''): Application
    {
        return new Application("
            \$routes = (new Weft\\Http\\Router())
                ->get('/', fn() => Weft\\Http\\Response::text((string) Worker::index()))
                ->get('/slow', function () { fwrite(STDERR, \"working\\n\"); Handler::waitsFor('go'); return Weft\\Http\\Response::text(\"slow\\n\"); });
            \$server = new Weft\\Http\\Server(\$routes);
            $condition \$server->listen('$address');
            async(\$server->run(...));
            Worker::untilStopped();
            \$server->stop();");
    }

    private static function deadline(): float
    {
        return \microtime(true) + self::DEADLINE;
    }

    private static function freeAddress(): string
    {
        $socket = \stream_socket_server('tcp://127.0.0.1:0');

        return (string) \stream_socket_get_name($socket, false);
    }
}
