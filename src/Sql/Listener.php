<?php

declare(strict_types=1);

namespace Weft\Sql;

use Weft\Native\SqlListener;
use Weft\Pool\PoolClosedException;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Internal\WaitsFor;
use Weft\UsageError;

/**
 * A subscription to channels of PostgreSQL, made by {@see Database::listen()}.
 *
 * A loop over a listener does not end by itself: leave it, close the listener, or cancel its task. Each notification is delivered once and in
 * order, also after a cancelled wait. Notifications are read on demand; the others wait in the server.
 *
 * A listener has its own connection, outside the pool, and closes it when it is dropped.
 *
 * @implements \IteratorAggregate<int, Notification|NotificationsMissed>
 */
final class Listener implements \IteratorAggregate
{
    /** @var list<Notification|NotificationsMissed> received and not delivered yet, the newest first */
    private array $ready = [];

    private bool $closed = false;

    /** @internal made by {@see Database} */
    public function __construct(private readonly SqlListener $native)
    {
    }

    /**
     * Waits for the next notification. A lost connection is restored, however long that takes, and reported once as {@see NotificationsMissed}.
     *
     * @throws UsageError when the listener is closed
     * @throws ConnectionException when the server refuses the log-in
     * @throws PoolClosedException when the connection is lost after the database was closed
     */
    #[WaitsFor('a notification of PostgreSQL')]
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
            // Another task may have waited too, and received notifications in the meantime.
            $this->ready = [...\array_reverse($news), ...$this->ready];
        }

        return \array_pop($this->ready);
    }

    /** Ends the subscription and closes its connection. Loops over the listener end; {@see next()} throws {@see UsageError} in tasks that wait. */
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
