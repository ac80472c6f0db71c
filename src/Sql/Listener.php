<?php

declare(strict_types=1);

namespace Weft\Sql;

use Weft\Native\SqlListener;
use Weft\Pool\PoolClosedException;
use Weft\Runtime\Internal\Scheduler;
use Weft\UsageError;

/**
 * A subscription to channels of PostgreSQL, made by {@see Database::listen()}.
 *
 * A loop over it never ends by itself: leave it, close it, or cancel its task. What has come is handed out in order and once,
 * also after a cancelled wait. It is not read ahead: what is not asked for waits in the server.
 *
 * It has a connection of its own beside the pool, and ends it when it is dropped.
 *
 * @implements \IteratorAggregate<int, Notification|NotificationsMissed>
 */
final class Listener implements \IteratorAggregate
{
    /** @var list<Notification|NotificationsMissed> taken and not handed out yet, the last one first */
    private array $ready = [];

    private bool $closed = false;

    /** @internal made by {@see Database} */
    public function __construct(private readonly SqlListener $native)
    {
    }

    /**
     * Waits for the next notification. A lost connection is made again, for as long as it takes, and then told once.
     *
     * @throws UsageError when it is closed
     * @throws ConnectionException when the server does not let us in any more
     * @throws PoolClosedException when the connection is lost and the database was closed meanwhile
     */
    public function next(): Notification|NotificationsMissed
    {
        while ($this->ready === []) {
            Scheduler::await($this->native->wait());
            $news = \array_map(
                static fn (array $fields): Notification|NotificationsMissed => isset($fields[1], $fields[2])
                    ? new Notification($fields[0], $fields[1], $fields[2])
                    : new NotificationsMissed($fields[0]),
                $this->native->take(),
            );
            // Somebody else may have waited too, and have taken meanwhile.
            $this->ready = [...\array_reverse($news), ...$this->ready];
        }

        return \array_pop($this->ready);
    }

    /** Ends the subscription and its connection. Loops over it end, and whoever waits in {@see next()} gets a {@see UsageError}. */
    public function close(): void
    {
        $this->closed = true;
        $this->ready = [];
        $this->native->close();
    }

    /** @return \Generator<int, Notification|NotificationsMissed> */
    public function getIterator(): \Generator
    {
        while (!$this->closed) {
            try {
                $news = $this->next();
            } catch (UsageError $error) {
                if ($this->closed) {
                    return;
                }
                throw $error;
            }
            yield $news;
        }
    }
}
