<?php

declare(strict_types=1);

namespace Weft\EventSourcing\Internal;

/**
 * What an aggregate has recorded and which version it was loaded at. Kept beside the object, so that its properties are its state
 * and nothing else.
 *
 * @internal
 */
final class History
{
    /** @var \WeakMap<object, self>|null */
    private static ?\WeakMap $all = null;

    /** The last event that is stored. */
    public int $version = 0;

    /** @var list<object> not stored yet */
    public array $recorded = [];

    private function __construct(private readonly AggregateClass $class) {}

    public static function of(object $aggregate): self
    {
        self::$all ??= new \WeakMap();

        return self::$all[$aggregate] ??= new self(AggregateClass::of($aggregate::class));
    }

    public function record(object $aggregate, object $event): void
    {
        $this->class->apply($aggregate, $event);
        $this->recorded[] = $event;
    }
}
