<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Postgres;

use Weft\Pool\PoolException;
use Weft\Runtime\Task;
use Weft\Sql\Database;
use Weft\Sql\SqlException;

use function Weft\detach;

/**
 * Keeps the messages' table small. Autovacuum looks once a minute, in which a busy queue leaves a million dead rows; so whoever
 * acknowledges vacuums after so many, one process at a time.
 *
 * @internal
 */
final class Vacuum
{
    private const AFTER = 10_000;

    private int $dead = 0;
    private ?Task $running = null;

    public function __construct(private readonly Database $database) {}

    public function died(int $rows): void
    {
        $this->dead += $rows;
        if ($this->dead >= self::AFTER && ($this->running === null || $this->running->isDone())) {
            $this->dead = 0;
            $this->running = detach($this->run(...));
        }
    }

    private function run(): void
    {
        try {
            // Whoever finds another one at it passes: SKIP_LOCKED. Shortening the file would lock out everybody else.
            $this->database->execute('VACUUM (SKIP_LOCKED, TRUNCATE FALSE) weft_messages');
        } catch (PoolException | SqlException) {
            // An account that does not own the table leaves it to autovacuum; a server that is away has other worries.
        }
    }
}
