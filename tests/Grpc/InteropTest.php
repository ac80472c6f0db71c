<?php

declare(strict_types=1);

namespace Weft\Tests\Grpc;

use PHPUnit\Framework\TestCase;

/** grpc-go's interoperability client against a TestService in PHP. */
final class InteropTest extends TestCase
{
    /** The load balancer of the client that reads load reports. */
    private const BALANCER = '--service_config_json={"loadBalancingConfig":[{"test_backend_metrics_load_balancer":{}}]}';

    private static GrpcProcess $server;

    public static function setUpBeforeClass(): void
    {
        self::$server = GrpcProcess::start([__DIR__ . '/Interop/server.php']);
    }

    public static function tearDownAfterClass(): void
    {
        self::$server->stop();
    }

    /**
     * @dataProvider cases
     */
    public function testTheClientOfGrpcGoIsContentWith(string $case, string ...$arguments): void
    {
        [$host, $port] = explode(':', self::$server->address);

        [$exit, $output] = Tool::run('grpc-interop-client', ["--server_host=$host", "--server_port=$port", "--test_case=$case", ...$arguments]);

        self::assertSame(0, $exit, $output);
        self::assertSame('', self::$server->log());
    }

    /** @return iterable<string, list<string>> */
    public function cases(): iterable
    {
        $cases = [
            'empty_unary', 'large_unary', 'client_streaming', 'server_streaming', 'ping_pong', 'empty_stream', 'custom_metadata',
            'status_code_and_message', 'special_status_message', 'unimplemented_method', 'unimplemented_service',
            'cancel_after_begin', 'cancel_after_first_response', 'timeout_on_sleeping_server', 'rpc_soak', 'channel_soak',
        ];
        foreach ($cases as $case) {
            yield $case => [$case];
        }
        yield 'orca_per_rpc' => ['orca_per_rpc', self::BALANCER];
        yield 'orca_oob' => ['orca_oob', self::BALANCER];
    }
}
