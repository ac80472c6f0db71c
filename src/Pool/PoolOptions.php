<?php

declare(strict_types=1);

namespace Weft\Pool;

/**
 * The options of a {@see Pool} or of the connections of a `Weft\Sql\Database`. All times are seconds.
 *
 * SQLite ignores them: one writer thread groups commits, and the DSN sets the number of readers.
 */
final class PoolOptions
{
    /** Maximum in this process: `size`, or this worker's share of `sizeTotal`. */
    public readonly int $size;

    /**
     * @param positive-int $size maximum of resources, created on demand. Raise it when `stats()` shows waits while the
     *     server is idle, not when borrowers hold resources for too long
     * @param ?positive-int $sizeTotal maximum of all worker processes together, instead of `size`. Each worker has its share, at
     *     least 1. Set it where the server limits its connections
     * @param int $minimumIdle idle resources that are created in advance, for bursts; 0: none. At most the size
     * @param float $idleTimeout idle resources beyond `minimumIdle` are closed after this time; 0: never
     * @param float $maxLifetime maximum age; 0: unlimited. Keep it below the limits of servers and firewalls
     * @param float $lifetimeJitter fraction of `maxLifetime`, 0 to 1, over which the ends of resources are spread that were created
     *     together
     * @param float $renewalTimeout how long after its lifetime a resource may still be lent while borrowers wait; 0: it is
     *     closed at its next return
     * @param float $borrowTimeout how long a borrow waits before `PoolExhaustedException`; 0: only while a resource is created for it
     * @param float $returnTimeout how long cleaning a returned connection may take before it is closed; 0: every connection
     *     that needs cleaning is closed
     * @param float $createTimeout how long creation may take; 0: unlimited
     * @param float $keepaliveInterval how often an idle resource is validated; 0: never. Set it below the time after which a
     *     firewall drops idle connections
     * @param float $validateAfter a resource that was unused for longer is validated, with a round trip, before it is lent; 0: never
     * @param float $validationTimeout how long a validation may take
     * @param float $leakThreshold a resource that is held for longer is reported with the call stack of its borrower; 0:
     *     never, and no stack is recorded
     * @param positive-int $connectLimit how many resources are created at a time
     * @param bool $failFast whether borrows fail at once while the server is known to be down, instead of waiting for it
     * @param bool $bindToTask whether a task that borrows again gets the lease it holds. Only for a {@see Pool}
     * @param bool $autoReturn whether resources are returned when the task that holds them ends. Only for a {@see Pool}
     * @param string $name the pool's name in messages and metrics; empty: the database's name
     *
     * @throws \ValueError for a size below 1, a minimum above the size, a time that is negative, NaN or infinite
     */
    public function __construct(
        int $size = 20,
        public readonly ?int $sizeTotal = null,
        public readonly int $minimumIdle = 0,
        public readonly float $idleTimeout = 600.0,
        public readonly float $maxLifetime = 1800.0,
        public readonly float $lifetimeJitter = 0.4,
        public readonly float $renewalTimeout = 1.0,
        public readonly float $borrowTimeout = 30.0,
        public readonly float $returnTimeout = 5.0,
        public readonly float $createTimeout = 30.0,
        public readonly float $keepaliveInterval = 0.0,
        public readonly float $validateAfter = 30.0,
        public readonly float $validationTimeout = 1.0,
        public readonly float $leakThreshold = 0.0,
        public readonly int $connectLimit = 8,
        public readonly bool $failFast = true,
        public readonly bool $bindToTask = false,
        public readonly bool $autoReturn = true,
        public readonly string $name = '',
    ) {
        if ($size < 1) {
            throw new \ValueError("Pool size must be at least 1, got {$size}");
        }
        if ($sizeTotal !== null && $sizeTotal < 1) {
            throw new \ValueError("Pool sizeTotal must be at least 1, got {$sizeTotal}");
        }
        if ($connectLimit < 1) {
            throw new \ValueError("Pool connectLimit must be at least 1, got {$connectLimit}");
        }
        $this->size = $sizeTotal === null ? $size : Internal\WorkerShare::of($sizeTotal);
        if ($minimumIdle < 0 || $minimumIdle > $this->size) {
            throw new \ValueError("Pool minimumIdle must be between 0 and the size {$this->size}, got {$minimumIdle}");
        }
        if (!($lifetimeJitter >= 0.0 && $lifetimeJitter <= 1.0)) {
            throw new \ValueError("Pool lifetimeJitter must be between 0 and 1, got {$lifetimeJitter}");
        }
        foreach ($this->times() as $option => $seconds) {
            if (!($seconds >= 0.0 && $seconds < \INF)) {
                throw new \ValueError("Pool {$option} must be a finite number of seconds that is not negative, got {$seconds}");
            }
        }
    }

    /**
     * @internal the options for the extension
     *
     * @return array<string, int|float|bool>
     */
    public function native(): array
    {
        return $this->times() + [
            'size' => $this->size,
            'minimumIdle' => $this->minimumIdle,
            'lifetimeJitter' => $this->lifetimeJitter,
            'connectLimit' => $this->connectLimit,
            'failFast' => $this->failFast,
        ];
    }

    /** @return array<string, float> */
    private function times(): array
    {
        return [
            'idleTimeout' => $this->idleTimeout,
            'maxLifetime' => $this->maxLifetime,
            'renewalTimeout' => $this->renewalTimeout,
            'borrowTimeout' => $this->borrowTimeout,
            'returnTimeout' => $this->returnTimeout,
            'createTimeout' => $this->createTimeout,
            'keepaliveInterval' => $this->keepaliveInterval,
            'validateAfter' => $this->validateAfter,
            'validationTimeout' => $this->validationTimeout,
            'leakThreshold' => $this->leakThreshold,
        ];
    }
}
