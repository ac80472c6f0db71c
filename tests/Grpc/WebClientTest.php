<?php

declare(strict_types=1);

namespace Weft\Tests\Grpc;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Tests\Http\Directory;

/** The client that pages use, from npm, in Node: over HTTP/1.1. */
final class WebClientTest extends GrpcTestCase
{
    /** @dataProvider formats */
    #[DataProvider('formats')]
    public function testTheClientOfGrpcWebCallsIn(string $format): void
    {
        if (exec('command -v npm') === '') {
            self::markTestSkipped('npm is not installed');
        }
        $server = $this->serve(<<<'PHP'
            'get' => static fn(GetUserRequest $request, Call $call) => match (true) {
                $call->value('authorization') !== 'Bearer 1' => throw new StatusException(Status::Unauthenticated, 'who are you?'),
                $request->id === 7 => throw new StatusException(Status::NotFound, "no user 7: \u{1F608}"),
                default => new User($request->id, name: str_repeat('é', (int) ($request->id / 10))),
            },
            'list' => static function () {
                for ($i = 1; $i <= 5; $i++) {
                    yield new User($i);
                    delay(0.02);
                }
                throw new StatusException(Status::DataLoss, 'no more');
            },
            PHP);

        // Its XMLHttpRequest keeps a storage in the temporary directory.
        $directory = new Directory();
        exec(implode(' ', array_map(escapeshellarg(...), ['env', "TMPDIR=$directory->path", 'timeout', '300', 'node', __DIR__ . '/Web/client.js', Tool::directory('grpc-web'), $server->address, $format])) . ' 2>&1', $output, $code);
        $directory->remove();

        self::assertSame(0, $code, implode("\n", $output));
        $results = json_decode(implode("\n", $output), true);
        self::assertSame(['ids' => [228], 'code' => 0, 'message' => ''], $results['get']);
        self::assertSame(['ids' => [300_000], 'code' => 0, 'message' => ''], $results['large']);
        self::assertSame(['ids' => [], 'code' => 5, 'message' => "no user 7: \u{1F608}"], $results['refused']);
        self::assertSame(['ids' => [1, 2, 3, 4, 5], 'code' => 15, 'message' => 'no more'], $results['list']);
    }

    /** @return iterable<string, array{string}> */
    public static function formats(): iterable
    {
        yield 'text' => ['text'];
        yield 'binary' => ['binary'];
    }
}
