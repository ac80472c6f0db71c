<?php

declare(strict_types=1);

namespace Weft\EventSourcing\Internal;

use Weft\EventSourcing\AggregateClosed;
use Weft\EventSourcing\AggregateClosedException;
use Weft\Sql\Transaction;

/**
 * The recorded events of an aggregate and the version at which it was loaded. Stored beside the object, whose properties are only its state.
 *
 * @internal
 */
final class History
{
    /** @var \WeakMap<object, self>|null */
    private static ?\WeakMap $all = null;

    /** The version of the last stored event, of an open transaction as well. */
    public int $version = 0;

    /** @var list<object> not stored yet */
    public array $recorded = [];

    public bool $isClosed = false;

    private bool $isOfClone = false;

    private function __construct(private readonly AggregateClass $class) {}

    public static function of(object $aggregate): self
    {
        $history = self::entry($aggregate);
        if ($history->isOfClone) {
            throw new \Error("{$history->class->class} is a clone, which has neither version nor events: record and save with the original, or load the aggregate again");
        }

        return $history;
    }

    /** Two objects with the same version and events would conflict, or store events twice. */
    public static function refuseClone(object $clone): void
    {
        self::entry($clone)->isOfClone = true;
    }

    private static function entry(object $aggregate): self
    {
        self::$all ??= new \WeakMap();

        return self::$all[$aggregate] ??= new self(AggregateClass::of($aggregate::class));
    }

    public function record(object $aggregate, object $event): void
    {
        if ($this->isClosed) {
            throw new AggregateClosedException("{$this->class->class} is closed and cannot record " . $event::class);
        }
        $this->class->apply($aggregate, $event);
        $this->recorded[] = $event;
        $this->isClosed = $event instanceof AggregateClosed;
    }

    /** The recorded events were stored, and are recorded again if the transaction does not keep them. */
    public function saved(Transaction $transaction, int $version): void
    {
        [$before, $events] = [$this->version, $this->recorded];
        $transaction->onRollback(function () use ($before, $events): void {
            $this->version = $before;
            $this->recorded = [...$events, ...$this->recorded];
        });
        $this->version = $version;
        $this->recorded = [];
    }
}
