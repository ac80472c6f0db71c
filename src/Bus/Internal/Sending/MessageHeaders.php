<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Sending;

use Weft\Bus\Header;
use Weft\Bus\Internal\Clock;
use Weft\Internal\Number;

/**
 * The headers for the options of one message.
 *
 * @internal
 */
final class MessageHeaders
{
    /**
     * Headers that RabbitMQ adds when a message passes through queues. It takes a message that is sent with them for one in a cycle, and drops
     * it.
     */
    public const ADDED_BY_BROKER = [
        'x-death' => true, 'x-first-death-exchange' => true, 'x-first-death-queue' => true, 'x-first-death-reason' => true,
        'x-last-death-exchange' => true, 'x-last-death-queue' => true, 'x-last-death-reason' => true, 'x-delivery-count' => true,
        'x-acquired-count' => true,
    ];

    /**
     * All headers that RabbitMQ interprets, with names as it compares them. It copies a message to the queues in `CC` and `BCC`, and refuses it
     * when these are not lists.
     */
    public const BROKER_HEADERS = [...self::ADDED_BY_BROKER, 'CC' => true, 'BCC' => true];

    /** Limit of all application headers: RabbitMQ sends the headers of a message and of its dead letter in one frame. */
    private const MAX_BYTES = 32_768;

    /** Bytes of a value that its error shows. */
    private const SHOWN_BYTES = 16;

    /**
     * @param int|null              $priority 0 to 9, the highest first
     * @param float|null            $expires  seconds, from when it leaves
     * @param float|null            $due      when it leaves, as microtime(true) has it; null for now
     * @param array<string, string> $headers  of the application
     * @return array<string, string>
     */
    public static function headers(?int $priority, ?float $expires, ?float $due, array $headers): array
    {
        if ($priority !== null) {
            $headers[Header::PRIORITY] = (string) $priority;
        }
        if ($expires !== null) {
            $headers[Header::EXPIRES_AT] = (string) Clock::milliseconds(($due ?? Clock::now()) + $expires);
        }

        return $headers;
    }

    /**
     * @param array<mixed> $headers of the application
     * @throws \ValueError
     */
    public static function check(array $headers): void
    {
        self::checkNames($headers);
        foreach ($headers as $name => $value) {
            if (!\is_string($name) || !\is_string($value) || $name === '' || \strlen($name) > 128 || \in_array($name, self::reserved(), true) || \str_starts_with($name, 'weft-')) {
                throw new \ValueError("A header must have a name of 1 to 128 bytes that is not reserved for the bus and a string value, got \"{$name}\" with " . \get_debug_type($value));
            }
            if (\preg_match('//u', "{$name}{$value}") !== 1) {
                throw new \ValueError('The header "' . \mb_scrub($name, 'UTF-8') . '" of a message must be UTF-8, got the bytes ' . \bin2hex(\substr($value, 0, self::SHOWN_BYTES)) . ': encode binary values, for example as base64');
            }
        }
        /** @var array<string, string> $headers */
        if (($bytes = \strlen(\implode('', \array_keys($headers)) . \implode('', $headers))) > self::MAX_BYTES) {
            throw new \ValueError('The headers of a message must have at most ' . self::MAX_BYTES . " bytes in total, got {$bytes}");
        }
    }

    /**
     * @param array<mixed> $headers
     * @throws \ValueError for one that the broker interprets
     */
    public static function checkNames(array $headers): void
    {
        foreach (\array_intersect_key($headers, self::BROKER_HEADERS) as $name => $_) {
            throw new \ValueError("The header \"{$name}\" cannot be set: RabbitMQ interprets it");
        }
    }

    /** @throws \ValueError */
    public static function priority(int $priority): int
    {
        return $priority >= 0 && $priority <= 9 ? $priority : throw new \ValueError("A priority must be 0 to 9, got {$priority}");
    }

    /** @throws \ValueError */
    public static function lifetime(float $seconds): float
    {
        return !\is_nan($seconds) && $seconds > 0.0 && $seconds < 1e10
            ? $seconds
            : throw new \ValueError('The expiry of a message must be above 0 and below 10,000,000,000 seconds, got ' . Number::text($seconds));
    }

    /** @return list<string> */
    private static function reserved(): array
    {
        static $reserved = null;

        /** @var list<string> */
        return $reserved ??= \array_values((new \ReflectionClass(Header::class))->getConstants());
    }
}
