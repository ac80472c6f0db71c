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

    private static function server(string $address): Application
    {
        return new Application("
            \$routes = Weft\\Http\\Router::new()
                ->get('/', fn() => Weft\\Http\\Response::text((string) Worker::index()))
                ->get('/slow', function () { delay(0.8); return Weft\\Http\\Response::text(\"slow\\n\"); });
            \$server = new Weft\\Http\\Server(\$routes);
            \$server->listen('$address');
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
