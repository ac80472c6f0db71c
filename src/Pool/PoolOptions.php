<?php

declare(strict_types=1);

namespace Weft\Pool;

/**
 * The options of a {@see Pool} or of the connections of a `Weft\Sql\Database`: its size, and groups for everything else. All times are
 * seconds.
 *
 * ```
 * $database = Database::connect($dsn, new PoolOptions(size: 50, timeouts: new Timeouts(borrow: 2.0)));
 * ```
 *
 * SQLite ignores them: one writer thread groups commits, and the DSN sets the number of readers.
 */
final class PoolOptions
{
    /** Maximum in this process: `size`, or this worker's share of `sizeTotal`. */
    public readonly int $size;

    /**
     * @param positive-int $size maximum of resources, created on demand. Raise it when `stats()` shows waits while the server is
     *     idle, not when borrowers hold resources for too long
     * @param ?positive-int $sizeTotal maximum of all worker processes together, instead of `size`. Each worker has its share, at
     *     least 1. Set it where the server limits its connections
     * @param int $minimumIdle idle resources that are created in advance, at most the size; 0: none. Set it where bursts must not wait
     *     for connecting
     * @param Timeouts $timeouts how long borrowing, creating and returning may take
     * @param Lifetime $lifetime when resources are replaced, and idle ones closed
     * @param Validation $validation when a resource is checked
     * @param Creation $creation how many are created at a time, and what happens while the server is down
     * @param Leases $leases leak reports, and to what a lease is bound
     * @param string $name the pool's name in messages and metrics; empty: the database's name. Set it where a program has several
     *
     * @throws \ValueError for a size below 1, or a minimum above the size
     */
    public function __construct(
        int $size = 20,
        public readonly ?int $sizeTotal = null,
        public readonly int $minimumIdle = 0,
        public readonly Timeouts $timeouts = new Timeouts(),
        public readonly Lifetime $lifetime = new Lifetime(),
        public readonly Validation $validation = new Validation(),
        public readonly Creation $creation = new Creation(),
        public readonly Leases $leases = new Leases(),
        public readonly string $name = '',
    ) {
        if ($size < 1) {
            throw new \ValueError("The option size of a pool must be at least 1, got {$size}");
        }
        if ($sizeTotal !== null && $sizeTotal < 1) {
            throw new \ValueError("The option sizeTotal of a pool must be at least 1, got {$sizeTotal}");
        }
        $this->size = $sizeTotal === null ? $size : Internal\WorkerShare::of($sizeTotal);
        if ($minimumIdle < 0 || $minimumIdle > $this->size) {
            throw new \ValueError("The option minimumIdle of a pool must be between 0 and the size {$this->size}, got {$minimumIdle}");
        }
    }

    /**
     * @internal the options for the extension
     *
     * @return array<string, int|float|bool>
     */
    public function native(): array
    {
        return [
            'size' => $this->size,
            'minimumIdle' => $this->minimumIdle,
            'borrowTimeout' => $this->timeouts->borrow,
            'createTimeout' => $this->timeouts->create,
            'returnTimeout' => $this->timeouts->return,
            'maxLifetime' => $this->lifetime->max,
            'lifetimeJitter' => $this->lifetime->jitter,
            'renewalTimeout' => $this->lifetime->renewal,
            'idleTimeout' => $this->lifetime->idle,
            'validateAfter' => $this->validation->after,
            'keepaliveInterval' => $this->validation->keepalive,
            'validationTimeout' => $this->validation->timeout,
            'connectLimit' => $this->creation->limit,
            'failFast' => $this->creation->failFast,
            'leakThreshold' => $this->leases->leakThreshold,
        ];
    }
}
