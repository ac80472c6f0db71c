<?php

declare(strict_types=1);

namespace Weft\Tests;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\App;
use Weft\Bus\Transport\RabbitMqQueue;
use Weft\Grpc\Client\ChannelOptions;
use Weft\Grpc\Client\Http2Channel;
use Weft\Grpc\Client\MethodConfig;
use Weft\Grpc\Client\RetryPolicy;
use Weft\Grpc\Client\RetryThrottling;
use Weft\Grpc\Status;
use Weft\Http\ApplicationPool;
use Weft\Http\Response;
use Weft\Http\Sessions;
use Weft\Http\Sessions\FileStore;
use Weft\Lock\Locks;
use Weft\Lock\MemoryStore;
use Weft\RestartPolicy;

use function Weft\delay;
use function Weft\timeout;

/** From PHP 8.5 on, converting NAN to a string or a bool and INF to an int emits a warning, which many applications turn into an exception. */
final class NotANumberTest extends TestCase
{
    private const SOURCES = __DIR__ . '/../src';

    /** @var list<string> */
    private array $warnings = [];

    protected function setUp(): void
    {
        \set_error_handler(function (int $level, string $message): bool {
            $this->warnings[] = $message;

            return true;
        });
    }

    protected function tearDown(): void
    {
        \restore_error_handler();
    }

    /**
     * @dataProvider settings
     *
     * @param array<string, float> $arguments
     */
    #[DataProvider('settings')]
    public function testASettingThatIsNoNumberIsAcceptedOrNamed(string $class, array $arguments): void
    {
        try {
            new $class(...$arguments);
        } catch (\ValueError $error) {
            self::assertStringContainsString('NAN', $error->getMessage());
        }
        self::assertSame([], $this->warnings);
    }

    /** @return iterable<string, array{class-string, array<string, float>}> each setting that is a float, of the constructors that need only numbers */
    public static function settings(): iterable
    {
        foreach (self::classes() as $class) {
            $constructor = $class->getConstructor();
            $parameters = $class->isInstantiable() && $constructor !== null ? $constructor->getParameters() : [];
            $needed = \array_filter($parameters, static fn(\ReflectionParameter $parameter): bool => !$parameter->isOptional());
            if (\array_filter($needed, static fn(\ReflectionParameter $parameter): bool => !self::takesFloat($parameter)) !== []) {
                continue;
            }
            $arguments = \array_fill_keys(\array_map(static fn(\ReflectionParameter $parameter): string => $parameter->getName(), $needed), 0.5);
            foreach (\array_filter($parameters, self::takesFloat(...)) as $parameter) {
                yield "{$class->getName()} \${$parameter->getName()}" => [$class->getName(), [$parameter->getName() => \NAN] + $arguments];
            }
        }
    }

    /** @dataProvider refusals */
    #[DataProvider('refusals')]
    public function testAnArgumentThatIsNoNumberIsNamed(\Closure $call): void
    {
        try {
            $call();
            self::fail('nothing was thrown');
        } catch (\ValueError $error) {
            self::assertStringContainsString('NAN', $error->getMessage());
        }
        self::assertSame([], $this->warnings);
    }

    /** @return iterable<string, array{\Closure(): mixed}> */
    public static function refusals(): iterable
    {
        yield 'delay()' => [static fn() => delay(\NAN)];
        yield 'timeout()' => [static fn() => timeout(\NAN, static fn() => 1)];
        yield 'App' => [static fn() => new App(grace: \NAN)];
        yield 'a health check' => [static fn() => (new App())->check('x', static fn() => true, every: \NAN)];
        yield 'RestartPolicy' => [static fn() => RestartPolicy::onFailure(\NAN)];
        yield 'Locks' => [static fn() => new Locks(new MemoryStore(), seconds: \NAN)];
        yield 'Sessions' => [static fn() => new Sessions(new FileStore(\sys_get_temp_dir()), idle: \NAN)];
        yield 'ApplicationPool' => [static fn() => new ApplicationPool(static fn() => new \stdClass(), wait: \NAN)];
        yield 'events' => [static fn() => Response::events([], \NAN)];
        yield 'RetryPolicy' => [static fn() => new RetryPolicy([Status::Unavailable], initialBackoff: \NAN)];
        yield 'RetryThrottling $maxTokens' => [static fn() => new RetryThrottling(\NAN, 1.0)];
        yield 'RetryThrottling $tokenRatio' => [static fn() => new RetryThrottling(1.0, \NAN)];
        yield 'MethodConfig' => [static fn() => new MethodConfig(timeout: \NAN)];
        yield 'ChannelOptions' => [static fn() => new ChannelOptions(timeout: \NAN)];
        yield 'a call of gRPC' => [static fn() => Http2Channel::connect('localhost:1')->clientStreaming('/a.B/C', [], \stdClass::class, \NAN, [])];
        yield 'a stream' => [static fn() => RabbitMqQueue::stream(maxAge: \NAN)];
    }

    /** @return iterable<\ReflectionClass<object>> */
    private static function classes(): iterable
    {
        foreach (new \RecursiveIteratorIterator(new \RecursiveDirectoryIterator(self::SOURCES, \FilesystemIterator::SKIP_DOTS)) as $file) {
            $path = \substr($file->getPathname(), \strlen(self::SOURCES) + 1, -4);
            $name = 'Weft\\' . \strtr($path, '/', '\\');
            // A file whose name begins with a small letter holds functions.
            if (!\ctype_upper(\basename($path)[0])) {
                continue;
            }
            // Bridges extend classes of frameworks that may not be installed.
            if (!\str_contains($name, '\\Internal\\') && !\str_starts_with($name, 'Weft\\Bridge\\') && \preg_match('/\bfloat\b/', (string) \file_get_contents($file->getPathname())) === 1 && \class_exists($name)) {
                yield new \ReflectionClass($name);
            }
        }
    }

    private static function takesFloat(\ReflectionParameter $parameter): bool
    {
        $type = $parameter->getType();

        return $type instanceof \ReflectionNamedType && $type->getName() === 'float';
    }
}
