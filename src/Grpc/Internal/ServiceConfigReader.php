<?php

declare(strict_types=1);

namespace Weft\Grpc\Internal;

use Weft\Grpc\Client\Balancing;
use Weft\Grpc\Client\MethodConfig;
use Weft\Grpc\Client\RetryPolicy;
use Weft\Grpc\Client\RetryThrottling;
use Weft\Grpc\Client\ServiceConfig;
use Weft\Grpc\Status;

/**
 * Reads a service config in the format of gRPC's doc/service_config.md.
 *
 * @internal
 */
final class ServiceConfigReader
{
    public function read(string $json): ServiceConfig
    {
        try {
            $config = \json_decode($json, true, 16, \JSON_THROW_ON_ERROR);
        } catch (\JsonException $error) {
            throw new \ValueError("The service config is not valid JSON: {$error->getMessage()}", previous: $error);
        }
        $methods = [];
        foreach (self::list($config, 'methodConfig') as $number => $given) {
            $method = self::method($given, "methodConfig[$number]");
            foreach (self::names($given, "methodConfig[$number]") as $name) {
                $methods[$name] ??= $method;
            }
        }
        $throttling = $config['retryThrottling'] ?? null;

        return new ServiceConfig(
            self::balancing($config),
            $methods,
            $throttling === null ? null : self::throttling($throttling),
        );
    }

    private static function throttling(mixed $given): RetryThrottling
    {
        $maxTokens = self::number($given, 'maxTokens', 'retryThrottling');
        $tokenRatio = self::number($given, 'tokenRatio', 'retryThrottling');

        return self::at('retryThrottling', static fn(): RetryThrottling => new RetryThrottling($maxTokens, $tokenRatio));
    }

    /** @param array<mixed> $config */
    private static function balancing(array $config): Balancing
    {
        $policies = self::list($config, 'loadBalancingConfig');
        if ($policies === [] && isset($config['loadBalancingPolicy'])) {
            return self::policy($config['loadBalancingPolicy']) ?? throw self::unsupported('loadBalancingPolicy');
        }
        // In the order of preference.
        foreach ($policies as $policy) {
            $known = \is_array($policy) ? Balancing::tryFrom((string) \array_key_first($policy)) : null;
            if ($known !== null) {
                return $known;
            }
        }

        return $policies === [] ? Balancing::PickFirst : throw self::unsupported('loadBalancingConfig');
    }

    /** The older form: a name in any case, such as that of the enum in service_config.proto (`ROUND_ROBIN`). */
    private static function policy(mixed $name): ?Balancing
    {
        return \is_string($name) ? Balancing::tryFrom(\strtolower($name)) : null;
    }

    private static function unsupported(string $place): \ValueError
    {
        return self::wrong($place, 'names no supported policy: pick_first and round_robin are supported');
    }

    /** @return list<string> */
    private static function names(mixed $given, string $place): array
    {
        return \array_map(static function (mixed $name) use ($place): string {
            [$service, $method] = \is_array($name) ? [$name['service'] ?? '', $name['method'] ?? ''] : [null, null];
            if (!\is_string($service) || !\is_string($method) || $service === '' && $method !== '') {
                throw self::wrong("$place.name", 'must have a service, or be {} for all');
            }

            return $method === '' ? $service : "$service/$method";
        }, self::list($given, 'name'));
    }

    private static function method(mixed $given, string $place): MethodConfig
    {
        $timeout = isset($given['timeout']) ? self::duration($given['timeout'], "$place.timeout") : null;
        $retry = isset($given['retryPolicy']) ? self::retry($given['retryPolicy'], "$place.retryPolicy") : null;

        return self::at($place, static fn(): MethodConfig => new MethodConfig($timeout, $retry, ($given['waitForReady'] ?? false) === true));
    }

    private static function retry(mixed $given, string $place): RetryPolicy
    {
        $attempts = self::number($given, 'maxAttempts', $place);
        if ($attempts < 2) {
            throw self::wrong("$place.maxAttempts", "must be at least 2, got $attempts");
        }

        $statuses = \array_map(static fn(mixed $name): Status => self::status($name, "$place.retryableStatusCodes"), self::list($given, 'retryableStatusCodes'));
        $initialBackoff = self::duration($given['initialBackoff'] ?? null, "$place.initialBackoff");
        $maxBackoff = self::duration($given['maxBackoff'] ?? null, "$place.maxBackoff");
        $multiplier = self::number($given, 'backoffMultiplier', $place);

        // gRFC A6 limits the number of attempts to five.
        return self::at($place, static fn(): RetryPolicy => new RetryPolicy($statuses, (int) \min($attempts, 5), $initialBackoff, $maxBackoff, $multiplier));
    }

    /**
     * Names the place of a value that is out of its bounds.
     *
     * @template T of object
     *
     * @param \Closure(): T $make
     *
     * @return T
     */
    private static function at(string $place, \Closure $make): object
    {
        try {
            return $make();
        } catch (\ValueError $error) {
            throw new \ValueError("The service config is wrong: $place: " . \lcfirst($error->getMessage()), previous: $error);
        }
    }

    /** `"UNAVAILABLE"` in any case, or `14` (gRFC A6) */
    private static function status(mixed $name, string $place): Status
    {
        foreach (Status::cases() as $status) {
            $upper = \strtoupper((string) \preg_replace('/(?<!^)[A-Z]/', '_$0', $status->name));
            if ($name === $status->value || \is_string($name) && \strtoupper($name) === $upper) {
                return $status;
            }
        }
        throw self::wrong($place, 'has no status ' . (string) \json_encode($name));
    }

    /** `"1.5s"` */
    private static function duration(mixed $text, string $place): float
    {
        return \is_string($text) && \preg_match('/^(\d+(?:\.\d{1,9})?)s$/', $text, $seconds) === 1
            ? (float) $seconds[1]
            : throw self::wrong($place, 'must be seconds such as "0.1s", got ' . (string) \json_encode($text));
    }

    private static function number(mixed $given, string $name, string $place): float
    {
        $number = $given[$name] ?? null;

        return \is_int($number) || \is_float($number) ? (float) $number : throw self::wrong("$place.$name", 'must be a number, got ' . (string) \json_encode($number));
    }

    /** @return list<mixed> */
    private static function list(mixed $given, string $name): array
    {
        if (!\is_array($given)) {
            throw new \ValueError('The service config must be made of objects, got ' . (string) \json_encode($given));
        }
        $list = $given[$name] ?? [];

        return \is_array($list) && \array_is_list($list) ? $list : throw self::wrong($name, 'must be a list');
    }

    private static function wrong(string $place, string $what): \ValueError
    {
        return new \ValueError("The service config is wrong: $place $what");
    }
}
