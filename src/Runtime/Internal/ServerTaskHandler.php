<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

/**
 * What a server does with what arrives.
 *
 * @template A of object a request, a call
 *
 * @internal
 */
interface ServerTaskHandler
{
    /**
     * The life of a request, in a task of its own: the one with `$id` of the server's `ServerTasks`.
     *
     * @param A $request
     */
    public function handle(object $request, int $id): void;

    /** What the extension has to say of a request that is being handled: `ServerTasks::GONE`, or any other for its deadline. */
    public function interrupt(Coroutine $task, int $event): void;

    /**
     * Its task has ended before it was answered.
     *
     * @param A $request
     */
    public function abandon(object $request): void;

    /**
     * Answers what will never be handled to its end, because the process ends: the request that has ended it, or another.
     *
     * @param A $request
     */
    public function condemn(object $request, bool $isCulprit): void;

    /** @return list<string> folders of `src` with the classes that it needs for any request, refusal and failure */
    public function folders(): array;

    /** The process is about to end: no connection is accepted any more, and those there are end with what is in flight. */
    public function refuseMore(): void;

    /** How many are open that carry nothing of another server. */
    public function connections(): int;

    /**
     * For names of tasks and for the log, such as `GET /people/{id} from 127.0.0.1:40000`.
     *
     * @param A $request
     */
    public function describe(object $request): string;
}
