<?php

declare(strict_types=1);

namespace Weft\Workers\Internal;

/**
 * The options of `weft run`. Times are in seconds and sizes in bytes; null means no limit.
 *
 * @internal
 */
final class RunOptions
{
    /**
     * @param list<string> $command the command line of a worker
     * @param list<string> $watch files, and directories whose source files are watched
     * @param array<string, string> $environment additional environment variables of the workers
     * @param int $maxCrashes consecutive failures of every worker after which the supervisor gives up
     * @param string $application the file that the workers run, as the user has named it
     * @param string $advice for a program that returns before it was ready
     */
    public function __construct(
        public readonly array $command,
        public readonly int $workers = 1,
        public readonly ?int $maxRequests = null,
        public readonly ?int $maxMemory = null,
        public readonly ?float $maxAge = null,
        public readonly ?float $hangTimeout = 30.0,
        public readonly ?float $blockWarning = null,
        public readonly float $startTimeout = 60.0,
        public readonly float $drainTimeout = 40.0,
        public readonly int $maxCrashes = 8,
        public readonly array $watch = [],
        public readonly ?string $metrics = null,
        public readonly ?string $pidFile = null,
        public readonly array $environment = [],
        public readonly string $application = '',
        public readonly string $advice = '',
    ) {
    }
}
