<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

use Weft\Runtime\CompositeException;
use Weft\Runtime\Scope;
use Weft\Runtime\Task;

/**
 * Concurrent alternatives of which the first result counts: `any()` and `race()`.
 *
 * @internal
 */
final class Race
{
    private readonly WaitQueue $judge;
    /** @var list<array{array-key, ?\Throwable, mixed}> key, failure and result, in order of ending */
    private array $ends = [];
    private int $contenders = 0;

    private function __construct(private readonly Scope $scope)
    {
        $this->judge = new WaitQueue('the first of several alternatives');
    }

    /**
     * @param string $function for errors
     * @param iterable<array-key, mixed> $work callables and tasks
     */
    public static function of(string $function, Scope $scope, iterable $work): self
    {
        $competition = new self($scope);
        foreach ($work as $key => $item) {
            $item instanceof Task || \is_callable($item) || throw self::refused($function, $key, $item);
            $competition->contenders++;
            $scope->async($competition->contend(...), $key, $item)->named("alternative $key");
        }
        if ($competition->contenders === 0) {
            throw new \ValueError('At least one alternative is required');
        }

        return $competition;
    }

    /** The usual mistake is a call in place of a function that makes it. */
    public static function refused(string $function, int|string $key, mixed $item): \TypeError
    {
        return new \TypeError("Weft\\{$function}(): item {$key} must be a callable or a Task, got " . \get_debug_type($item) . '; pass fn() => … instead of its result');
    }

    public function firstEnd(): mixed
    {
        [, $failure, $result] = $this->end(0);
        $this->scope->cancel('another alternative was faster');

        return $failure === null ? $result : throw $failure;
    }

    public function firstSuccess(): mixed
    {
        $failures = [];
        for ($i = 0; $i < $this->contenders; $i++) {
            [$key, $failure, $result] = $this->end($i);
            if ($failure === null) {
                $this->scope->cancel('another alternative succeeded');

                return $result;
            }
            // A generator may give a key twice: no failure is lost.
            isset($failures[$key]) ? $failures[] = $failure : $failures[$key] = $failure;
        }

        /** @var non-empty-array<array-key, \Throwable> $failures there is at least one contender */
        throw new CompositeException($failures);
    }

    /** @param callable|Task $item */
    private function contend(int|string $key, mixed $item): void
    {
        $failure = $result = null;
        try {
            // Tasks that an alternative starts are part of it: their failure is its failure, and it wins only after they have ended.
            $result = $item instanceof Task ? $item->await() : CallScope::call(static fn(): mixed => $item());
        } catch (\Throwable $failure) {
        }
        $this->ends[] = [$key, $failure, $result];
        $this->judge->wake();
    }

    /** @return array{array-key, ?\Throwable, mixed} */
    private function end(int $index): array
    {
        while (!isset($this->ends[$index])) {
            $this->judge->wait();
        }

        return $this->ends[$index];
    }
}
