<?php

declare(strict_types=1);

namespace Weft\Tests\Cli;

use PHPUnit\Framework\TestCase;

final class ListenerTest extends TestCase
{
    public function testAConnectionThatNoWorkerHasAcceptedWaitsForTheNextOne(): void
    {
        $address = self::freeAddress();
        $app = self::server($address);
        $run = new Supervised($app->file);
        $worker = $run->wait('is ready')['pid'];
        $run->signal(\SIGSTOP);
        \posix_kill($worker, \SIGKILL);
        // Nobody is there to accept it: the supervisor, who starts the next worker, stands still.
        $connection = \stream_socket_client("tcp://$address", $code, $error, 5);
        \fwrite($connection, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        $run->signal(\SIGCONT);

        \stream_set_timeout($connection, 10);
        self::assertStringStartsWith('HTTP/1.1 200 OK', (string) \stream_get_contents($connection));
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
        for ($i = 0; $i < 200 && \count($served) < 2; $i++) {
            $served[\file_get_contents("http://$address/")] = true;
        }

        self::assertCount(2, $served, 'one of the workers never got a connection of ' . $i);
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
        $served = [1 => 0, 2 => 0];
        for ($i = 0; $i < 400; $i++) {
            $served[self::get($address)]++;
        }

        // Each falls to one or the other by chance: this is four times the standard deviation.
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

        self::assertLessThan(20.0, $slowest, 'nobody waits for the worker that stands still');
        $served = [];
        for ($i = 0; $i < 200 && !isset($served[1]); $i++) {
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
        $from = \microtime(true);
        for ($i = 0; $i < 100; $i++) {
            self::assertSame('2', self::get($address));
        }

        self::assertLessThan(2.0, \microtime(true) - $from);
    }

    public function testRequestsInFlightAreAnsweredDuringAReload(): void
    {
        $address = self::freeAddress();
        $app = self::server($address);
        $run = new Supervised($app->file);
        $run->wait('is ready');
        $connection = \stream_socket_client("tcp://$address", $code, $error, 5);
        \fwrite($connection, "GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
        $run->signal(\SIGHUP);
        $run->wait('reload finished');

        \stream_set_timeout($connection, 10);
        self::assertStringEndsWith("slow\n", (string) \stream_get_contents($connection));
        self::assertStringContainsString('exit code 0', $run->wait('ended')['message']);
    }

    public function testTwoServersThatLetTheSystemChooseThePortGetDifferentOnes(): void
    {
        $app = new Application('
            $ports = [];
            for ($i = 0; $i < 2; $i++) { $ports[] = (new Weft\Http\Server(Weft\Http\Router::new()))->listen("127.0.0.1:0"); }
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
        $connection = \stream_socket_client("tcp://$address", $code, $error, 5);
        \fwrite($connection, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        \stream_set_timeout($connection, 5);

        return \explode("\r\n\r\n", (string) \stream_get_contents($connection), 2)[1] ?? '';
    }

    private static function server(string $address, string $condition = ''): Application
    {
        return new Application("
            \$routes = Weft\\Http\\Router::new()
                ->get('/', fn() => Weft\\Http\\Response::text((string) Worker::index()))
                ->get('/slow', function () { delay(0.8); return Weft\\Http\\Response::text(\"slow\\n\"); });
            \$server = new Weft\\Http\\Server(\$routes);
            $condition \$server->listen('$address');
            async(\$server->run(...));
            Worker::untilStopped();
            \$server->stop();");
    }

    private static function freeAddress(): string
    {
        $socket = \stream_socket_server('tcp://127.0.0.1:0');

        return (string) \stream_socket_get_name($socket, false);
    }
}
