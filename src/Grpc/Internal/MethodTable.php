<?php

declare(strict_types=1);

namespace Weft\Grpc\Internal;

use Weft\Grpc\Health\Health;
use Weft\Grpc\InvalidServiceError;
use Weft\Grpc\Limits;
use Weft\Grpc\MethodLimits;

/**
 * The methods of a server as the extension knows them.
 *
 * @internal
 */
final class MethodTable
{
    /** The budgets for calls, as numbered by the extension. */
    private const UNARY = 0;
    private const STREAM = 1;
    private const WATCH = 2;
    private const WATCHES = '/' . Health::SERVICE . '/Watch';

    /** @var list<array{string, bool, ?int, ?float, list<int>, int}> path, whether the client streams, bytes of a message, seconds, concurrency limits, lane */
    public readonly array $methods;
    /** @var list<array{string, int, int}> name, calls in progress and waiting */
    public readonly array $concurrency;

    /**
     * @param list<Method> $methods
     *
     * @throws InvalidServiceError the limits name a service or method that is not served
     */
    public function __construct(array $methods, Limits $limits)
    {
        $concurrency = $numbers = [];
        foreach ($limits->methods as $name => $own) {
            self::mustBeServed($name, $methods);
            if ($own->inFlight !== null) {
                $numbers[$name] = \count($concurrency);
                $concurrency[] = [$name, $own->inFlight, $own->queue];
            }
        }
        $this->concurrency = $concurrency;
        $this->methods = \array_map(static fn(Method $method): array => self::row($method, $limits->methods, $numbers), $methods);
    }

    /**
     * @param array<string, MethodLimits> $limits
     * @param array<string, int> $concurrency
     *
     * @return array{string, bool, ?int, ?float, list<int>, int}
     */
    private static function row(Method $method, array $limits, array $concurrency): array
    {
        [$service, $name] = self::names($method);
        $own = $limits[$name] ?? null;
        $all = $limits[$service] ?? null;
        /** @var list<int> $queues the narrower limit first: a call that waits for it does not occupy the wider one */
        $queues = \array_values(\array_filter([$concurrency[$name] ?? null, $concurrency[$service] ?? null], \is_int(...)));

        return [
            $method->path,
            $method->clientStreams,
            $own->messageBytes ?? $all?->messageBytes,
            $own->timeout ?? $all?->timeout,
            $queues,
            self::lane($method),
        ];
    }

    private static function lane(Method $method): int
    {
        return match (true) {
            $method->path === self::WATCHES => self::WATCH,
            $method->clientStreams || $method->serverStreams => self::STREAM,
            default => self::UNARY,
        };
    }

    /** @param list<Method> $methods */
    private static function mustBeServed(string $name, array $methods): void
    {
        foreach ($methods as $method) {
            if (\in_array($name, self::names($method), true)) {
                return;
            }
        }
        throw new InvalidServiceError("The limits name \"$name\", and there is no such service or method: write \"api.Users\" or \"api.Users/Get\"");
    }

    /** @return array{string, string} of the service and of the method */
    private static function names(Method $method): array
    {
        $name = \substr($method->path, 1);

        return [\strstr($name, '/', true) ?: '', $name];
    }
}
