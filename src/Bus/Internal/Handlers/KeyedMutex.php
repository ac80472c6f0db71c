<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Handlers;

use Weft\Runtime\Mutex;

/**
 * Serialises work per key among the tasks of this process, first come, first served.
 *
 * @internal
 */
final class KeyedMutex
{
    /** @var array<string, array{Mutex, int}> with how many tasks have or want it */
    private array $keys = [];

    /**
     * @template T
     *
     * @param \Closure(): T $work
     * @return T
     */
    public function synchronized(string $key, \Closure $work): mixed
    {
        [$mutex] = $this->keys[$key] ??= [new Mutex(), 0];
        $this->keys[$key][1]++;
        try {
            return $mutex->synchronized($work);
        } finally {
            if (--$this->keys[$key][1] === 0) {
                unset($this->keys[$key]);
            }
        }
    }
}
