<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Ordering;

use Psr\Log\LoggerInterface;
use Weft\Sql\Database;
use Weft\Sql\SqlException;
use Weft\Sql\UniqueViolation;

use function Weft\delay;

/**
 * Of all processes that want a name one has it. Nobody's clock counts: the holder moves a number on, and who sees it stand still
 * for long enough takes over.
 *
 * @internal
 */
final class Lease
{
    /** Seconds between two moves of the holder, and between two looks of the others. */
    private const BEAT = 0.5;

    /** Seconds of standing still after which others take over. */
    private const STALE = 5.0;

    /** Seconds without a move after which the holder gives up, before others take over. */
    private const LOST = 3.0;

    private readonly string $owner;

    /** @var array{string, int, float}|null holder, its number, and since when it stands still by the monotonic clock */
    private ?array $seen = null;

    public function __construct(
        private readonly Database $database,
        private readonly string $name,
        private readonly LoggerInterface $logger,
    ) {
        // For people who look: which process of which machine.
        $this->owner = \substr((string) \gethostname(), 0, 30) . ' ' . \getmypid() . ' ' . \bin2hex(\random_bytes(8));
    }

    /** Tries once; has to be called again and again. */
    public function take(): bool
    {
        $row = $this->database->execute('SELECT owner, beat FROM weft_leases WHERE name = ?', [$this->name])->rows()[0] ?? null;
        if ($row === null) {
            return $this->insert();
        }
        if ($this->seen === null || [$row['owner'], $row['beat']] !== [$this->seen[0], $this->seen[1]]) {
            $this->seen = [$row['owner'], $row['beat'], self::now()];
        }
        if (self::now() - $this->seen[2] < self::STALE) {
            return false;
        }

        return $this->database->execute('UPDATE weft_leases SET owner = ?, beat = beat + 1 WHERE name = ? AND owner = ? AND beat = ?', [$this->owner, $this->name, $row['owner'], $row['beat']])->affected() === 1;
    }

    /**
     * Waits for it.
     *
     * @param \Closure(): bool $goOn whether it makes sense to wait any longer
     */
    public function await(\Closure $goOn): bool
    {
        while ($goOn()) {
            try {
                if ($this->take()) {
                    return true;
                }
            } catch (SqlException $exception) {
                $this->logger->warning('The lease {name} cannot be looked up: {error}', ['name' => $this->name, 'error' => $exception->getMessage(), 'exception' => $exception]);
            }
            delay(self::BEAT);
        }

        return false;
    }

    /**
     * Holds on to it until it is cancelled.
     *
     * @param \Closure(): void $lost called when that is no longer certain; then it returns
     */
    public function hold(\Closure $lost): void
    {
        $moved = self::now();
        while (true) {
            delay(self::BEAT);
            try {
                if ($this->database->execute('UPDATE weft_leases SET beat = beat + 1 WHERE name = ? AND owner = ?', [$this->name, $this->owner])->affected() === 0) {
                    break;
                }
                $moved = self::now();
            } catch (SqlException $exception) {
                if (self::now() - $moved > self::LOST) {
                    $this->logger->error('The lease {name} is lost: {error}', ['name' => $this->name, 'error' => $exception->getMessage(), 'exception' => $exception]);
                    break;
                }
            }
        }
        $lost();
    }

    /** Gives it up, so that others need not wait until it is stale. */
    public function release(): void
    {
        try {
            $this->database->execute('DELETE FROM weft_leases WHERE name = ? AND owner = ?', [$this->name, $this->owner]);
        } catch (SqlException) {
            // Then they wait.
        }
    }

    private function insert(): bool
    {
        try {
            return $this->database->execute('INSERT INTO weft_leases (name, owner, beat) VALUES (?, ?, 0)', [$this->name, $this->owner])->affected() === 1;
        } catch (UniqueViolation) {
            return false;
        }
    }

    private static function now(): float
    {
        return \hrtime(true) / 1e9;
    }
}
