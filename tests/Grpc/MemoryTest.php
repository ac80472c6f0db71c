<?php

declare(strict_types=1);

namespace Weft\Tests\Grpc;

use PHPUnit\Framework\TestCase;
use Weft\Grpc\Client\ChannelOptions;
use Weft\Grpc\Client\Http2Channel;
use Weft\Grpc\Status;
use Weft\Grpc\StatusException;
use Weft\Tests\Protobuf\Generated\Everything\Everything;

use function Weft\run;

/** Messages that are small on the wire and large in memory. */
final class MemoryTest extends TestCase
{
    /** A message with that many empty ones, of two or three bytes each, takes more memory than a limit of 100,000 bytes allows. */
    private const MANY = 30_000;
    /** Serves messages with a limit of 100,000 bytes; the answer has as many children as the request says. */
    private const PROGRAM = <<<'PHP'
        <?php
        require %s;
        use Weft\Grpc\{Call, Limits, MessageLimits, ServerOptions};
        use Weft\Tests\Protobuf\Generated\Everything\{Everything, EverythingFile};
        interface Echoes
        {
            const SERVICE = 'everything.Echoes';
            const FILE = EverythingFile::class;
            const METHODS = [
                'Unary' => ['unary', Everything::class, Everything::class, false, false],
                'Stream' => ['stream', Everything::class, Everything::class, true, true],
            ];
        }
        final class Service implements Echoes
        {
            public function unary(Everything $request, Call $call): Everything
            {
                return new Everything(int32: count($request->children), children: array_fill(0, $request->int32, new Everything()));
            }
            public function stream(iterable $requests, Call $call): iterable
            {
                foreach ($requests as $request) {
                    yield $this->unary($request, $call);
                }
            }
        }
        $app = new Weft\App();
        $app->grpc('127.0.0.1:0', new Service(), new ServerOptions(limits: new Limits(messages: new MessageLimits(bytes: 100_000))));
        $app->run(static function (array $addresses): void { echo $addresses[0], "\n"; });
        PHP;

    private GrpcProcess $server;
    private Http2Channel $channel;

    protected function setUp(): void
    {
        $program = (string) tempnam(sys_get_temp_dir(), 'weft-grpc');
        file_put_contents($program, \sprintf(self::PROGRAM, var_export(\dirname(__DIR__, 2) . '/autoload.php', true)));
        $this->server = GrpcProcess::launch([$program], $program);
        $this->channel = Http2Channel::connect($this->server->address, options: new ChannelOptions(timeout: 100.0, messageBytes: 100_000));
    }

    protected function tearDown(): void
    {
        $this->server->stop();
    }

    public function testARequestWhoseValuesTakeTooMuchMemoryIsResourceExhausted(): void
    {
        $failure = $this->failure(fn(): object => $this->call(new Everything(children: self::children())));

        self::assertSame(Status::ResourceExhausted, $failure->status);
        self::assertStringContainsString('its values take more than 19177216 bytes of memory, which is the limit', $failure->getMessage());
        self::assertSame(100, $this->call(new Everything(children: self::children(100)))->int32);
    }

    public function testSoIsAMessageOfAStream(): void
    {
        $failure = $this->failure(fn(): mixed => run(function (): void {
            $requests = [new Everything(children: self::children(100)), new Everything(children: self::children())];
            foreach ($this->channel->bidiStreaming('/everything.Echoes/Stream', $requests, Everything::class, null, []) as $answer) {
                self::assertSame(100, $answer->int32);
            }
        }));

        self::assertSame(Status::ResourceExhausted, $failure->status);
    }

    public function testSoIsAResponse(): void
    {
        $failure = $this->failure(fn(): object => $this->call(new Everything(int32: self::MANY)));

        self::assertSame(Status::ResourceExhausted, $failure->status);
        self::assertStringContainsString('19177216 bytes of memory', $failure->getMessage());
        self::assertCount(100, $this->call(new Everything(int32: 100))->children);
    }

    /** @return list<Everything> */
    private static function children(int $count = self::MANY): array
    {
        return array_fill(0, $count, new Everything());
    }

    private function call(Everything $request): Everything
    {
        return run(fn(): object => $this->channel->unary('/everything.Echoes/Unary', $request, Everything::class, null, []));
    }

    private function failure(\Closure $call): StatusException
    {
        try {
            $call();
        } catch (StatusException $failure) {
            return $failure;
        }
        self::fail('the call did not fail');
    }
}
