<?php

declare(strict_types=1);

namespace Weft\Tests\Grpc;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Tests\Http\ServerProcess;

/** Requests that HTTP lets no server answer reach neither methods with JSON nor grpc-web. */
final class VettingTest extends TestCase
{
    private static GrpcProcess $server;

    public static function setUpBeforeClass(): void
    {
        self::$server = GrpcProcess::launch([__DIR__ . '/Library/server.php']);
    }

    public static function tearDownAfterClass(): void
    {
        self::$server->stop();
    }

    /** @dataProvider requests */
    #[DataProvider('requests')]
    public function testIsRefused(string $head): void
    {
        $socket = self::$server->connect();
        fwrite($socket, "$head\r\n\r\n");

        self::assertStringStartsWith('HTTP/1.1 400 ', ServerProcess::readAll($socket));
    }

    /** @return iterable<string, array{string}> */
    public static function requests(): iterable
    {
        $kinds = [
            'JSON' => 'GET /v1/shelves/3/books/a HTTP/1.1',
            'grpc-web' => "POST /library.Library/GetBook HTTP/1.1\r\nContent-Type: application/grpc-web",
        ];
        foreach ($kinds as $kind => $head) {
            yield "$kind without a Host" => [$head];
            yield "$kind with two" => ["$head\r\nHost: a\r\nHost: b"];
            yield "$kind with another coding" => ["$head\r\nHost: a\r\nTransfer-Encoding: gzip, chunked"];
            yield "$kind with two codings" => ["$head\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked"];
        }
    }
}
