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
            self::balancing(self::list($config, 'loadBalancingConfig')),
            $methods,
            $throttling === null ? null : new RetryThrottling(self::number($throttling, 'maxTokens', 'retryThrottling'), self::number($throttling, 'tokenRatio', 'retryThrottling')),
        );
    }

    /** @param list<mixed> $given policies in order of preference */
    private static function balancing(array $given): Balancing
    {
        foreach ($given as $policy) {
            $known = \is_array($policy) ? Balancing::tryFrom((string) \array_key_first($policy)) : null;
            if ($known !== null) {
                return $known;
            }
        }

        return $given === [] ? Balancing::PickFirst : throw self::wrong('loadBalancingConfig', 'names no supported policy: pick_first and round_robin are supported');
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
        $retry = $given['retryPolicy'] ?? null;

        return new MethodConfig(
            isset($given['timeout']) ? self::duration($given['timeout'], "$place.timeout") : null,
            $retry === null ? null : self::retry($retry, "$place.retryPolicy"),
            ($given['waitForReady'] ?? false) === true,
        );
    }

    private static function retry(mixed $given, string $place): RetryPolicy
    {
        $attempts = self::number($given, 'maxAttempts', $place);
        if ($attempts < 2) {
            throw self::wrong("$place.maxAttempts", "must be at least 2, got $attempts");
        }

        return new RetryPolicy(
            \array_map(static fn(mixed $name): Status => self::status($name, "$place.retryableStatusCodes"), self::list($given, 'retryableStatusCodes')),
            // gRFC A6 limits the number to five.
            (int) \min($attempts, 5),
            self::duration($given['initialBackoff'] ?? null, "$place.initialBackoff"),
            self::duration($given['maxBackoff'] ?? null, "$place.maxBackoff"),
            self::number($given, 'backoffMultiplier', $place),
        );
    }

    /** `"UNAVAILABLE"` or `14` */
    private static function status(mixed $name, string $place): Status
    {
        foreach (Status::cases() as $status) {
            $upper = \strtoupper((string) \preg_replace('/(?<!^)[A-Z]/', '_$0', $status->name));
            if ($name === $status->value || $name === $upper) {
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
