<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Persistence;

use Psr\Log\LoggerInterface;
use Weft\Pool\PoolException;
use Weft\Runtime\Mutex;
use Weft\Runtime\Task;
use Weft\Sql\Database;
use Weft\Sql\SqlException;
use Weft\Sql\Transaction;

use function Weft\delay;
use function Weft\detach;
use function Weft\shield;

/**
 * Deletes rows in batches. A crash leaves some behind: the relay publishes those messages again, and their ids are recognised.
 *
 * @internal
 */
final class DeferredDelete
{
    /** Rows per statement. */
    private const BATCH_SIZE = 500;

    /** Seconds until fewer rows are deleted. */
    private const MAX_DELAY = 0.2;

    /** @var list<string> */
    private array $keys = [];

    private ?Task $timer = null;
    private readonly Mutex $turn;
    private readonly Dialect $dialect;

    public function __construct(
        private readonly Database $database,
        private readonly string $table,
        private readonly string $column,
        private readonly LoggerInterface $logger,
    ) {
        $this->dialect = new Dialect($database);
        $this->turn = new Mutex();
    }

    public function add(string $key): void
    {
        $this->keys[] = $key;
        if (\count($this->keys) === self::BATCH_SIZE) {
            // Detached, so that no handler waits for it.
            detach($this->flush(...));
        } else {
            // A timer that was cancelled before it began has not reset it.
            $this->timer = $this->timer === null || $this->timer->isDone() ? detach($this->later(...)) : $this->timer;
        }
    }

    /** Returns when every row that was added before is deleted, also by a call that runs already. */
    public function flush(): void
    {
        $this->turn->synchronized($this->eraseAll(...));
    }

    private function eraseAll(): void
    {
        $keys = [];
        try {
            while ($this->keys !== []) {
                /** @var non-empty-list<string> $keys */
                $keys = \array_splice($this->keys, 0, self::BATCH_SIZE);
                shield(fn() => $this->erase($keys));
            }
        } catch (PoolException | SqlException $exception) {
            $this->logger->warning('{count} rows of {table} could not be deleted, the relay deletes them: {error}', [
                'count' => \count($keys),
                'table' => $this->table,
                'error' => $exception->getMessage(),
                'exception' => $exception,
            ]);
        }
    }

    private function later(): void
    {
        try {
            delay(self::MAX_DELAY);
        } finally {
            $this->timer = null;
        }
        $this->flush();
    }

    /** @param non-empty-list<string> $keys */
    private function erase(array $keys): void
    {
        [$among, $parameters] = $this->dialect->among($this->column, $keys);
        $this->database->transaction(function (Transaction $transaction) use ($among, $parameters): void {
            $lazily = $this->dialect->commitsLazily();
            if ($lazily !== null) {
                $transaction->execute($lazily);
            }
            $transaction->execute("DELETE FROM {$this->table} WHERE {$among}", $parameters);
        });
    }
}
