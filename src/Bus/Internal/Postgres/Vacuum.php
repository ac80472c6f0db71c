<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Postgres;

use Weft\Pool\PoolException;
use Weft\Runtime\Task;
use Weft\Sql\Database;
use Weft\Sql\SqlException;

use function Weft\current;
use function Weft\detach;

/**
 * Keeps the table of messages small. Autovacuum runs once a minute, in which a busy queue leaves a million dead rows. Each process
 * therefore vacuums after a number of acknowledgements, one process at a time.
 *
 * @internal
 */
final class Vacuum
{
    private const MIN_DEAD_ROWS = 10_000;

    private int $dead = 0;
    private ?Task $running = null;

    public function __construct(private readonly Database $database) {}

    public function died(int $rows): void
    {
        $this->dead += $rows;
        // Without an event loop the caller would wait for it: autovacuum does it.
        if ($this->dead >= self::MIN_DEAD_ROWS && current() !== null && ($this->running === null || $this->running->isDone())) {
            $this->dead = 0;
            $this->running = detach($this->run(...));
        }
    }

    private function run(): void
    {
        try {
            // SKIP_LOCKED: another process is vacuuming. Truncating the file would lock out all others.
            $this->database->execute('VACUUM (SKIP_LOCKED, TRUNCATE FALSE) weft_messages');
        } catch (PoolException | SqlException) {
            // Autovacuum does it for an account that does not own the table; an unavailable server needs no vacuum now.
        }
    }
}
