<?php

declare(strict_types=1);

namespace Weft\Tests\Grpc;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Grpc\Client\Http2Channel;
use Weft\Grpc\Client\Tls;
use Weft\Grpc\Status;
use Weft\Grpc\StatusException;
use Weft\Runtime\Channel;
use Weft\Tests\Grpc\Interop\Generated\EchoStatus;
use Weft\Tests\Grpc\Interop\Generated\Payload;
use Weft\Tests\Grpc\Interop\Generated\PBEmpty;
use Weft\Tests\Grpc\Interop\Generated\ResponseParameters;
use Weft\Tests\Grpc\Interop\Generated\SimpleRequest;
use Weft\Tests\Grpc\Interop\Generated\StreamingInputCallRequest;
use Weft\Tests\Grpc\Interop\Generated\StreamingOutputCallRequest;
use Weft\Tests\Grpc\Interop\Generated\TestServiceClient;
use Weft\Tests\Http\Certificates;

use function Weft\async;
use function Weft\run;

/** Our client against grpc-go's interoperability server, in plain text and with TLS. */
final class ClientInteropTest extends TestCase
{
    private static Certificates $certificates;
    /** @var list<resource> */
    private static array $processes = [];
    /** @var array<string, Http2Channel> */
    private static array $channels = [];

    public static function setUpBeforeClass(): void
    {
        self::$certificates = new Certificates();
        self::$certificates->issue('server', 'interop.test');
        $directory = self::$certificates->directory;
        self::$channels = [
            'plain text' => Http2Channel::connect(self::start()),
            'TLS' => Http2Channel::connect(self::start('-use_tls', "-tls_cert_file=$directory/server.crt", "-tls_key_file=$directory/server.key"), new Tls("$directory/ca.crt", serverName: 'interop.test')),
        ];
    }

    private static function start(string ...$arguments): string
    {
        $socket = stream_socket_server('tcp://127.0.0.1:0');
        $address = (string) stream_socket_get_name($socket, false);
        fclose($socket);
        $port = explode(':', $address)[1];
        self::$processes[] = proc_open([Tool::path('grpc-interop-server'), "-port=$port", ...$arguments], [1 => ['file', '/dev/null', 'w'], 2 => ['file', '/dev/null', 'w']], $pipes);
        $deadline = microtime(true) + 10;
        while (!\is_resource($socket = @stream_socket_client("tcp://$address"))) {
            self::assertLessThan($deadline, microtime(true), 'the server of grpc-go does not start');
            usleep(5000);
        }
        fclose($socket);

        return $address;
    }

    public static function tearDownAfterClass(): void
    {
        self::$channels = [];
        foreach (self::$processes as $process) {
            proc_terminate($process, 9);
            proc_close($process);
        }
        self::$processes = [];
        self::$certificates->remove();
    }

    /** @return iterable<string, array{string}> */
    public static function channels(): iterable
    {
        yield 'plain text' => ['plain text'];
        yield 'TLS' => ['TLS'];
    }

    private static function client(string $channel): TestServiceClient
    {
        return new TestServiceClient(self::$channels[$channel]);
    }

    /** @dataProvider channels */
    #[DataProvider('channels')]
    public function testEmptyUnary(string $channel): void
    {
        self::assertEquals(new PBEmpty(), self::client($channel)->emptyCall(new PBEmpty()));
    }

    /** @dataProvider channels */
    #[DataProvider('channels')]
    public function testLargeUnary(string $channel): void
    {
        $response = self::client($channel)->unaryCall(new SimpleRequest(responseSize: 314_159, payload: self::payload(271_828)));

        self::assertSame(314_159, \strlen($response->payload->body));
    }

    /** @dataProvider channels */
    #[DataProvider('channels')]
    public function testClientStreaming(string $channel): void
    {
        $requests = array_map(static fn(int $size) => new StreamingInputCallRequest(payload: self::payload($size)), [27_182, 8, 1_828, 45_904]);

        self::assertSame(74_922, self::client($channel)->streamingInputCall($requests)->aggregatedPayloadSize);
    }

    /** @dataProvider channels */
    #[DataProvider('channels')]
    public function testServerStreaming(string $channel): void
    {
        $sizes = [];
        foreach (self::client($channel)->streamingOutputCall(self::wanting(31_415, 9, 2_653, 58_979)) as $response) {
            $sizes[] = \strlen($response->payload->body);
        }

        self::assertSame([31_415, 9, 2_653, 58_979], $sizes);
    }

    /** @dataProvider channels */
    #[DataProvider('channels')]
    public function testPingPong(string $channel): void
    {
        $sizes = run(static function () use ($channel): array {
            $requests = new Channel();
            $responses = self::client($channel)->fullDuplexCall($requests);
            $wanted = [31_415, 9, 2_653, 58_979];
            async(static fn() => $requests->send(self::wanting($wanted[0])));
            $sizes = [];
            foreach ($responses as $response) {
                $sizes[] = \strlen($response->payload->body);
                isset($wanted[\count($sizes)]) ? $requests->send(self::wanting($wanted[\count($sizes)])) : $requests->close();
            }

            return $sizes;
        });

        self::assertSame([31_415, 9, 2_653, 58_979], $sizes);
    }

    /** @dataProvider channels */
    #[DataProvider('channels')]
    public function testEmptyStream(string $channel): void
    {
        $responses = run(static fn(): array => iterator_to_array(self::client($channel)->fullDuplexCall([])));

        self::assertSame([], $responses);
    }

    /** @dataProvider channels */
    #[DataProvider('channels')]
    public function testStatusCodeAndMessageOfBothKinds(string $channel): void
    {
        $status = new EchoStatus(2, 'test status message');
        $unary = self::failure(static fn() => self::client($channel)->unaryCall(new SimpleRequest(responseStatus: $status)));
        $duplex = self::failure(static fn() => run(static fn() => iterator_to_array(self::client($channel)->fullDuplexCall([new StreamingOutputCallRequest(responseStatus: $status)]))));

        self::assertSame([Status::Unknown, 'test status message'], [$unary->status, $unary->getMessage()]);
        self::assertSame([Status::Unknown, 'test status message'], [$duplex->status, $duplex->getMessage()]);
    }

    /** @dataProvider channels */
    #[DataProvider('channels')]
    public function testSpecialStatusMessage(string $channel): void
    {
        $message = "\t\ntest with whitespace\r\nand Unicode BMP \u{263A} and non-BMP \u{1F608}\t\n";

        $failure = self::failure(static fn() => self::client($channel)->unaryCall(new SimpleRequest(responseStatus: new EchoStatus(2, $message))));

        self::assertSame($message, $failure->getMessage());
    }

    /** @dataProvider channels */
    #[DataProvider('channels')]
    public function testUnimplementedMethodAndService(string $channel): void
    {
        foreach (['/grpc.testing.TestService/UnimplementedCall', '/grpc.testing.UnimplementedService/UnimplementedCall'] as $method) {
            $failure = self::failure(static fn() => self::$channels[$channel]->unary($method, new PBEmpty(), PBEmpty::class, null, []));
            self::assertSame(Status::Unimplemented, $failure->status);
        }
    }

    /** @dataProvider channels */
    #[DataProvider('channels')]
    public function testCancelAfterFirstResponse(string $channel): void
    {
        $count = run(static function () use ($channel): int {
            foreach (self::client($channel)->fullDuplexCall([self::wanting(31_415), self::wanting(9)]) as $response) {
                return \strlen($response->payload->body);
            }

            return 0;
        });

        self::assertSame(31_415, $count);
    }

    /** @dataProvider channels */
    #[DataProvider('channels')]
    public function testTimeoutOnSleepingServer(string $channel): void
    {
        $request = new StreamingOutputCallRequest(responseParameters: [new ResponseParameters(size: 1, intervalUs: 120_000_000)]);
        $start = microtime(true);

        $failure = self::failure(static fn() => iterator_to_array(self::client($channel)->streamingOutputCall($request, timeout: 0.05)));

        self::assertSame(Status::DeadlineExceeded, $failure->status);
        self::assertLessThan(60.0, microtime(true) - $start, 'the answer would have come after 120 s');
    }

    /** @dataProvider channels */
    #[DataProvider('channels')]
    public function testCustomMetadataComesBackWithAFailure(string $channel): void
    {
        $metadata = ['x-grpc-test-echo-trailing-bin' => "\xab\xab\xab"];

        $failure = self::failure(static fn() => self::client($channel)->unaryCall(new SimpleRequest(responseStatus: new EchoStatus(2, 'a')), metadata: $metadata));

        self::assertSame(["\xab\xab\xab"], $failure->metadata['x-grpc-test-echo-trailing-bin']);
    }

    public function testManyCallsShareAConnection(): void
    {
        $sizes = run(static fn(): array => \Weft\all(array_map(
            static fn(int $size) => static fn() => \strlen(self::client('plain text')->unaryCall(new SimpleRequest(responseSize: $size))->payload->body),
            range(1, 300),
        )));

        self::assertSame(range(1, 300), $sizes);
    }

    public function testAServerThatIsNotThereIsUnavailable(): void
    {
        $client = new TestServiceClient(Http2Channel::connect('127.0.0.1:1'));

        $failure = self::failure(static fn() => $client->emptyCall(new PBEmpty()));

        self::assertSame(Status::Unavailable, $failure->status);
        self::assertStringStartsWith('cannot connect to 127.0.0.1:1: ', $failure->getMessage());
    }

    private static function failure(\Closure $call): StatusException
    {
        try {
            $call();
        } catch (StatusException $failure) {
            return $failure;
        }
        self::fail('the call did not fail');
    }

    private static function payload(int $size): Payload
    {
        return new Payload(body: str_repeat("\0", $size));
    }

    private static function wanting(int ...$sizes): StreamingOutputCallRequest
    {
        return new StreamingOutputCallRequest(responseParameters: array_map(static fn(int $size) => new ResponseParameters(size: $size), $sizes));
    }
}
