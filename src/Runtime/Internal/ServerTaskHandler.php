<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

/**
 * The part of a server that handles its requests or calls.
 *
 * @template A of object a request, a call
 *
 * @internal
 */
interface ServerTaskHandler
{
    /**
     * Handles a request in a task of its own, which has the key `$id` in the server's `ServerTasks`.
     *
     * @param A $request
     */
    public function handle(object $request, int $id): void;

    /** The extension reports an event of a request in progress: `ServerTasks::CLIENT_DISCONNECTED` when its client has disconnected, any other value for its deadline. */
    public function interrupt(Coroutine $task, int $event): void;

    /**
     * The task has ended without a response.
     *
     * @param A $request
     */
    public function abandon(object $request): void;

    /**
     * Answers a request that cannot be finished because the process ends.
     *
     * @param A $request
     * @param string|null $cause how its own handler has ended the process, such as `called exit()`; null if it was another one
     */
    public function failResponse(object $request, ?string $cause): void;

    /** @return list<string> directories of `src` with the classes that it needs for any request, refusal and failure */
    public function directories(): array;

    /** The process is about to end: accept no more connections, and close the open ones once their requests are answered. */
    public function refuseMore(): void;

    /** The number of open connections, without those that carry requests of another server. */
    public function connections(): int;

    /**
     * Names a request in task lists and the log, such as `GET /people/{id} from 127.0.0.1:40000`.
     *
     * @param A $request
     */
    public function describe(object $request): string;
}
