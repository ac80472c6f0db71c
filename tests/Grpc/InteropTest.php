<?php

declare(strict_types=1);

namespace Weft\Tests\Grpc;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Tests\Http\Certificates;

/** grpc-go's interoperability client against a TestService in PHP. */
final class InteropTest extends TestCase
{
    /** The load balancer of the client that reads load reports. */
    private const BALANCER = '--service_config_json={"loadBalancingConfig":[{"test_backend_metrics_load_balancer":{}}]}';

    private static GrpcProcess $plain;
    private static GrpcProcess $secure;
    private static Certificates $certificates;

    public static function setUpBeforeClass(): void
    {
        self::$certificates = new Certificates();
        self::$certificates->issue('server', 'interop.test');
        $directory = self::$certificates->directory;
        self::$plain = GrpcProcess::launch([__DIR__ . '/Interop/server.php']);
        self::$secure = GrpcProcess::launch([__DIR__ . '/Interop/server.php', "$directory/server.crt", "$directory/server.key"]);
    }

    public static function tearDownAfterClass(): void
    {
        self::$plain->stop();
        self::$secure->stop();
        self::$certificates->remove();
    }

    /**
     * @dataProvider cases
     */
    #[DataProvider('cases')]
    public function testTheClientOfGrpcGoIsContentWith(string $case, string ...$arguments): void
    {
        self::assertContent(self::$plain, $case, ...$arguments);
    }

    /**
     * @dataProvider cases
     */
    #[DataProvider('cases')]
    public function testTheClientOfGrpcGoIsContentOverTlsWith(string $case, string ...$arguments): void
    {
        $tls = ['--use_tls', '--use_test_ca', '--ca_file=' . self::$certificates->directory . '/ca.crt', '--server_host_override=interop.test'];

        self::assertContent(self::$secure, $case, ...$tls, ...$arguments);
    }

    private static function assertContent(GrpcProcess $server, string $case, string ...$arguments): void
    {
        [$host, $port] = explode(':', $server->address);

        [$exit, $output] = Tool::run('grpc-interop-client', ["--server_host=$host", "--server_port=$port", "--test_case=$case", ...$arguments]);

        self::assertSame(0, $exit, $output);
        // Two of the cases call what is not there.
        self::assertSame('', preg_replace('/^.* gRPC calls refused \(unknown_method\): .*\n/m', '', $server->log()));
    }

    /** @return iterable<string, list<string>> */
    public static function cases(): iterable
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
