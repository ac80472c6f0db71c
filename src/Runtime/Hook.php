<?php

declare(strict_types=1);

namespace Weft\Runtime;

use Weft\Internal\Boolean;

/**
 * A group of blocking calls that suspend the task instead of the process when a library makes them. See docs/reference/hooks.md.
 */
enum Hook: string
{
    /** `sleep()`, `usleep()`, `time_nanosleep()`, and the pauses between the attempts of a library. */
    case Sleep = 'sleep';
    /** Waits for sockets: streams, ext/sockets, curl, PDO, mysqli, Redis, AMQP. */
    case Sockets = 'sockets';
    /** Reading from and writing to pipes: `STDIN`, `exec()`, `proc_open()`. */
    case Pipes = 'pipes';
    /** `flock()`: a lock of another task or process, such as that of a session in a file. */
    case Locks = 'locks';
    /** The end of child processes: `exec()`, `proc_close()`, `pcntl_wait()`. */
    case Processes = 'processes';
    /** Look-ups of names: `gethostbyname()`, `dns_get_record()`, and those of all libraries. */
    case Names = 'names';

    /**
     * Those of the environment variable `WEFT_HOOKS`: `on`, `off`, or names separated by commas; all where it is not set.
     *
     * @return list<self>
     *
     * @throws \ValueError the variable has an unknown name
     */
    public static function fromEnvironment(): array
    {
        $value = \getenv('WEFT_HOOKS');
        if ($value === false || $value === '') {
            return self::cases();
        }
        $isOn = Boolean::parse($value);
        if ($isOn !== null) {
            return $isOn ? self::cases() : [];
        }

        return \array_map(self::named(...), \explode(',', $value));
    }

    /**
     * Whether tasks wait for their turn to use a handle, by the environment variable `WEFT_QUEUE_FOR_HANDLES`.
     *
     * @internal
     *
     * @throws \ValueError the variable is neither true nor false
     */
    public static function queuesForHandles(): bool
    {
        $value = (string) \getenv('WEFT_QUEUE_FOR_HANDLES');

        return Boolean::parse($value) ?? throw new \ValueError("WEFT_QUEUE_FOR_HANDLES is \"$value\": it must be " . Boolean::WORDS);
    }

    /**
     * The number by which the extension knows them.
     *
     * @param list<self> $hooks
     *
     * @internal
     */
    public static function mask(array $hooks): int
    {
        return \array_reduce($hooks, static fn(int $mask, self $hook): int => $mask | $hook->bit(), 0);
    }

    private static function named(string $name): self
    {
        return self::tryFrom(\trim($name)) ?? throw new \ValueError(
            "WEFT_HOOKS names the unknown hook \"$name\": it must be \"on\", \"off\" or some of " . \implode(', ', \array_map(static fn(self $hook): string => $hook->value, self::cases())),
        );
    }

    /** A value of `weft_group` in crates/ext/hooks/hooks.h. */
    private function bit(): int
    {
        return match ($this) {
            self::Sleep => 1,
            self::Sockets => 2,
            self::Pipes => 4,
            self::Locks => 8,
            self::Processes => 16,
            self::Names => 32,
        };
    }
}
