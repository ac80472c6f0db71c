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
interface ArrivalHandler
{
    /**
     * The life of an arrival, in a task of its own: the one with `$id` of the server's `Arrivals`.
     *
     * @param A $arrival
     */
    public function handle(object $arrival, int $id): void;

    /** What the extension has to say of an arrival that is being handled: `Arrivals::GONE`, or any other for its deadline. */
    public function interrupt(Coroutine $task, int $event): void;

    /**
     * Its task has ended before it was answered.
     *
     * @param A $arrival
     */
    public function abandon(object $arrival): void;

    /**
     * Answers what will never be handled to its end, because the process ends: the arrival that has ended it, or another.
     *
     * @param A $arrival
     */
    public function condemn(object $arrival, bool $isCulprit): void;

    /** @return list<string> folders of `src` with the classes that it needs for any arrival, refusal and failure */
    public function folders(): array;

    /** The process is about to end: no connection is accepted any more, and those there are end with what is in flight. */
    public function refuseMore(): void;

    /** How many are open that carry nothing of another server. */
    public function connections(): int;

    /**
     * For names of tasks and for the log, such as `GET /people/{id} from 127.0.0.1:40000`.
     *
     * @param A $arrival
     */
    public function describe(object $arrival): string;
}
