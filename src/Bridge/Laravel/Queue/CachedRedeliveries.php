<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Queue;

use Illuminate\Contracts\Cache\Repository;
use Illuminate\Contracts\Debug\ExceptionHandler;
use Illuminate\Foundation\Application;
use Weft\Runtime\Mutex;

use function Weft\shield;

/**
 * Counts in Laravel's cache how often jobs were begun by workers that ended before the jobs did, where the bus has no database for that. Jobs that
 * may have ended a worker are handled one at a time, so that the next end is counted for the job that causes it.
 *
 * @internal
 */
final class CachedRedeliveries
{
    private const KEY = 'weft:redeliveries:';

    /** Seconds that the cache keeps a count; Laravel counts the exceptions of a job for as long. */
    private const RETENTION = 86_400;

    private readonly Mutex $alone;

    public function __construct()
    {
        $this->alone = new Mutex();
    }

    /** @param \Closure(int): void $work is told how often the job came again, this time included */
    public function count(Application $application, string $id, \Closure $work): void
    {
        $key = self::KEY . $id;
        $known = static fn(): int => self::ask($application, static fn(Repository $cache): int => (int) $cache->get($key, 0));
        $attempt = static function () use ($application, $key, $known, $work): void {
            $redeliveries = $known() + 1;
            // Durable before the job begins, because the process may end next.
            self::ask($application, static fn(Repository $cache): int => (int) $cache->put($key, $redeliveries, self::RETENTION));
            try {
                $work($redeliveries);
            } finally {
                // The worker is running in any case.
                self::ask($application, static fn(Repository $cache): int => (int) $cache->forget($key));
            }
        };
        $known() === 0 ? $attempt() : $this->alone->synchronized($attempt);
    }

    /**
     * A store of the cache that is down fails no job: it is reported, and nothing counts.
     *
     * @param \Closure(Repository): int $question
     */
    private static function ask(Application $application, \Closure $question): int
    {
        try {
            return shield(static fn(): int => $question($application->make('cache')->driver()));
        } catch (\Throwable $down) {
            $application->make(ExceptionHandler::class)->report($down);

            return 0;
        }
    }
}
