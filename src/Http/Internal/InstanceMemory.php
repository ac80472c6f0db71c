<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Weft\Http\ApplicationPool;

/**
 * How many instances of an application fit into half of the memory that this process may use.
 *
 * @internal
 */
final class InstanceMemory
{
    /** Bytes that an instance is taken to need before one was booted. */
    private const FIRST_ESTIMATE = 4 << 20;

    /** Bytes that an instance is taken to need at least: what its requests load comes on top of what it has booted. */
    private const LEAST = 1 << 20;

    private readonly int $budget;
    private readonly int $before;

    /** @param int<1, max>|null $fixed */
    public function __construct(private readonly ?int $fixed)
    {
        $this->budget = $fixed === null ? \intdiv(self::available(), 2) : 0;
        $this->before = \memory_get_usage();
    }

    /** @param int $instances that exist */
    public function size(int $instances = 0): int
    {
        if ($this->fixed !== null) {
            return $this->fixed;
        }
        // The first instance also loads the code of the application, so the first measurement is high and those of further ones lower.
        $bytes = $instances === 0 ? self::FIRST_ESTIMATE : \max(self::LEAST, \intdiv(\memory_get_usage() - $this->before, $instances));

        return \max(1, \min(ApplicationPool::MOST_INSTANCES, \intdiv($this->budget, $bytes)));
    }

    /** Bytes that this process may use: memory_limit, and its share of the memory of the container or machine. */
    private static function available(): int
    {
        $limits = [\PHP_INT_MAX];
        $own = \ini_parse_quantity((string) \ini_get('memory_limit'));
        if ($own > 0) {
            $limits[] = $own;
        }
        $workers = \max(1, (int) \getenv('WEFT_WORKERS'));
        foreach (['/sys/fs/cgroup/memory.max', '/sys/fs/cgroup/memory/memory.limit_in_bytes'] as $file) {
            $limit = \is_readable($file) ? (int) \file_get_contents($file) : 0;
            if ($limit > 0) {
                $limits[] = \intdiv($limit, $workers);
            }
        }
        if (\is_readable('/proc/meminfo') && \preg_match('/^MemTotal:\s+(\d+) kB/m', (string) \file_get_contents('/proc/meminfo'), $found) === 1) {
            $limits[] = \intdiv((int) $found[1] * 1024, $workers);
        }

        return \min($limits);
    }
}
