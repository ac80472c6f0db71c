<?php

declare(strict_types=1);

namespace Weft\Runtime;

use Weft\Runtime\Internal\Children;
use Weft\Runtime\Internal\Coroutine;

/**
 * The scope that `Weft\scope()` passes to its body. Other tasks may receive it and start tasks in it.
 */
final class Scope
{
    private function __construct(private readonly Children $children)
    {
    }

    /**
     * @internal
     *
     * @param callable(self): mixed $body
     */
    public static function open(Coroutine $owner, callable $body): mixed
    {
        $children = new Children($owner->scheduler, $owner);
        $result = $error = null;
        try {
            $result = $body(new self($children));
        } catch (\Throwable $error) {
        }
        $error = $children->close($error);
        if ($error !== null) {
            throw $error;
        }

        return $result;
    }

    /**
     * Starts a task that belongs to this scope.
     *
     * @throws \Error the scope has ended
     */
    public function async(callable $main, mixed ...$args): Task
    {
        return $this->children->start($main, $args);
    }

    /** Cancels every task of the scope and its body. If the body still returns, its result is the result of the scope. */
    public function cancel(string $reason = 'its scope was cancelled'): void
    {
        $this->children->cancel($reason);
    }

    /** @internal Ends the scope with `$expired`, unless everything in it is about to end by itself. */
    public function expire(TimeoutException $expired): void
    {
        $this->children->expire($expired);
    }
}
