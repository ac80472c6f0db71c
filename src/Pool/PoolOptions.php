<?php

declare(strict_types=1);

namespace Weft\Pool;

/**
 * How a {@see Pool} or the connections of a `Weft\Sql\Database` behave. All times are seconds.
 *
 * SQLite ignores them: its writer is one thread that groups commits, and its readers are set in the DSN.
 */
final class PoolOptions
{
    /** The most there may be in this process: `size`, or this worker's share of `sizeTotal`. */
    public readonly int $size;

    /**
     * @param positive-int $size most resources at once, opened only as needed. Raise it when `stats()` shows waits while
     *     the server is idle, not when holders are slow
     * @param ?positive-int $sizeTotal most in all worker processes together; each takes its share, at least 1, instead of
     *     `size`. Set it where the server limits its clients
     * @param int $minimumIdle kept open and idle without anybody waiting, so that a burst finds them; 0: none. At most the size
     * @param float $idleTimeout those beyond `minimumIdle` are closed after so long without use; 0: never
     * @param float $maxLifetime nothing is used beyond this age; 0: any. Keep it below the server's or a firewall's own limit
     * @param float $lifetimeJitter part of `maxLifetime`, 0 to 1, over which the ends of what was opened together are spread
     * @param float $renewalTimeout how long past its lifetime one still goes from borrower to borrower while somebody waits; 0:
     *     it is renewed when it comes back next
     * @param float $borrowTimeout how long a task waits before `PoolExhaustedException`; 0: only for one that can be opened
     * @param float $returnTimeout how long cleaning a returned one may take before it is closed instead; 0: what needs cleaning
     *     is closed
     * @param float $createTimeout how long opening one may take; 0: as long as it takes
     * @param float $keepaliveInterval an idle one is asked so often whether it works; 0: never. Set it below the time after
     *     which a firewall forgets idle connections
     * @param float $validateAfter one that was silent for longer is asked before it is lent; 0: never. Costs a round trip then
     * @param float $validationTimeout how long such a question may take
     * @param float $leakThreshold one that is held for longer is reported with the stack of its borrower; 0: never, and no
     *     stack is recorded
     * @param positive-int $connectLimit how many are opened at a time
     * @param bool $failFast refuse borrowers at once while the server is known to be down, instead of letting them wait
     * @param bool $bindToTask a task that borrows again gets what it holds already. Only for a {@see Pool}
     * @param bool $autoReturn what a task has not returned comes back when the task ends. Only for a {@see Pool}
     * @param string $name what messages call the pool; empty: the database's name
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
     * @internal what the extension is told
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
