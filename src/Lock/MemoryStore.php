<?php

declare(strict_types=1);

namespace Weft\Lock;

/** Locks within one process, for tests and for programs with one process. Uses the monotonic clock. */
final class MemoryStore implements LockStore
{
    /** @var array<string, array{string, float, positive-int}> owner, expiry and fencing token, by name */
    private array $locks = [];

    public function acquire(string $name, string $owner, float $seconds): ?int
    {
        [$holder, $end, $fence] = $this->locks[$name] ?? ['', 0.0, 0];
        if ($holder !== '' && $end > self::now()) {
            return null;
        }
        $this->locks[$name] = [$owner, self::now() + $seconds, $fence + 1];

        return $fence + 1;
    }

    public function renew(string $name, string $owner, float $seconds): bool
    {
        if (!$this->isHeld($name, $owner)) {
            return false;
        }
        $this->locks[$name][1] = self::now() + $seconds;

        return true;
    }

    public function release(string $name, string $owner): bool
    {
        if (!$this->isHeld($name, $owner)) {
            return false;
        }
        $this->locks[$name][0] = '';

        return true;
    }

    private function isHeld(string $name, string $owner): bool
    {
        [$holder, $end] = $this->locks[$name] ?? ['', 0.0];

        return $holder === $owner && $end > self::now();
    }

    private static function now(): float
    {
        return \hrtime(true) / 1e9;
    }
}
