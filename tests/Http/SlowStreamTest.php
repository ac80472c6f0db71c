<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

/** Clients that read streams of an application slowly, which holds its instances meanwhile. */
final class SlowStreamTest extends HttpTestCase
{
    private const OTHER = '127.0.0.2';

    /** `/stream/{megabytes}` writes that much, and `/page` needs an instance of the same pool. */
    private const ROUTES = <<<'PHP'
        $routes->get('/stream/{megabytes}', static fn(Request $request, int $megabytes) => $pool->serve($request, static fn() => Response::stream((static function () use ($megabytes) {
            for ($piece = 0; $piece < 16 * $megabytes; $piece++) { yield str_repeat('X', 65_536); }
            fwrite(STDERR, "has written\n");
        })())));
        $routes->get('/page', static fn(Request $request) => $pool->serve($request, static fn() => Response::text('page')));
        $routes->get('/in-use', static fn() => Response::text((string) $pool->stats()['in_use']));
        PHP;

    public function testStreamsOfSlowClientsHoldHalfOfTheInstances(): void
    {
        $server = $this->serve('$pool = new Weft\Http\ApplicationPool(static fn() => new stdClass(), 2);' . self::ROUTES);

        // They read nothing.
        $clients = [self::send($server, '/stream/7'), self::send($server, '/stream/7'), self::send($server, '/stream/7')];
        foreach ($clients as $client) {
            self::assertSame('H', fread($client, 1));
        }

        self::assertSame('page', self::bodyOf($server->get('/page')), $server->log());
        foreach ($clients as $client) {
            self::assertSame(7 << 20, substr_count(ServerProcess::readAll($client), 'X'));
        }
    }

    /** The configuration of docs/explanation/security.md for large bodies: one address cannot take all instances. */
    public function testALimitOfRequestsThatIsTheSizeOfThePoolLeavesInstancesToOtherClients(): void
    {
        $server = $this->serve('$pool = new Weft\Http\ApplicationPool(static fn() => new stdClass(), 4);' . self::ROUTES, ', limits: new Limits(inFlight: 4)');

        $clients = [];
        for ($count = 0; $count < 8; $count++) {
            $clients[] = self::send($server, '/stream/1000');
        }
        foreach (array_slice($clients, 0, 2) as $client) {
            self::assertSame('H', fread($client, 1));
        }

        for ($round = 0; $round < 10; $round++) {
            self::assertSame('page', self::bodyOf($server->get('/page', '--interface', self::OTHER)), $server->log());
        }
        self::assertSame('2', self::bodyOf($server->get('/in-use', '--interface', self::OTHER)));
    }

    /** @return resource */
    private static function send(ServerProcess $server, string $path)
    {
        $socket = $server->connect();
        fwrite($socket, "GET $path HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");

        return $socket;
    }
}
