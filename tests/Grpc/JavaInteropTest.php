<?php

declare(strict_types=1);

namespace Weft\Tests\Grpc;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

/** grpc-java's interoperability client, which has the cases of compression that grpc-go's has not. */
final class JavaInteropTest extends TestCase
{
    private static ?GrpcProcess $server = null;

    protected function setUp(): void
    {
        if (exec('command -v java') === '' || exec('command -v mvn') === '') {
            self::markTestSkipped('Java and Maven are not installed');
        }
        self::$server ??= GrpcProcess::launch([__DIR__ . '/Interop/server.php']);
    }

    public static function tearDownAfterClass(): void
    {
        self::$server?->stop();
        self::$server = null;
    }

    /** @dataProvider cases */
    #[DataProvider('cases')]
    public function testTheClientOfGrpcJavaIsContentWith(string $case): void
    {
        [$host, $port] = explode(':', (string) self::$server?->address);
        $class = 'io.grpc.testing.integration.TestServiceClient';
        $command = ['timeout', '60', 'java', '-XX:TieredStopAtLevel=1', '-cp', Tool::directory('grpc-java') . '/*', $class, "--server_host=$host", "--server_port=$port", '--use_tls=false', "--test_case=$case"];

        exec(implode(' ', array_map(escapeshellarg(...), $command)) . ' 2>&1', $output, $code);

        self::assertSame(0, $code, implode("\n", $output));
        self::assertContains('Test completed.', $output);
        self::assertSame('', self::$server?->log());
    }

    /** @return iterable<string, array{string}> */
    public static function cases(): iterable
    {
        foreach (['client_compressed_unary', 'server_compressed_unary', 'client_compressed_streaming', 'server_compressed_streaming', 'very_large_request'] as $case) {
            yield $case => [$case];
        }
    }
}
