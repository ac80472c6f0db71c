<?php

declare(strict_types=1);

namespace Weft\Runtime;

/** A snapshot of a task. */
final class TaskInfo implements \Stringable
{
    /**
     * @param ?int $parent the task it was started by, null for the main task and detached ones
     * @param float $age seconds since it was started, at the resolution of one turn of the loop
     * @param ?string $waitsFor what it waits for: an object, or the function of Weft or of a library that the application has called; null unless it waits
     * @param ?string $place `file:line` of the code that waits, null unless it waits
     * @param string $origin `file:line` of the callable it runs
     */
    public function __construct(
        public readonly int $id,
        public readonly string $name,
        public readonly ?int $parent,
        public readonly TaskState $state,
        public readonly float $age,
        public readonly ?string $waitsFor,
        public readonly ?string $place,
        public readonly string $origin,
    ) {
    }

    public function __toString(): string
    {
        $doing = $this->waitsFor === null ? $this->state->value : "waits for $this->waitsFor at $this->place";
        $child = $this->parent === null ? '' : ", child of #$this->parent";

        return \sprintf('#%d %s (%.3f s old%s, started from %s) %s', $this->id, $this->name, $this->age, $child, $this->origin, $doing);
    }
}
