<?php

declare(strict_types=1);

namespace Weft\Runtime;

/** Every task waits for another task and no operation is in progress, so no task can ever continue. */
final class DeadlockException extends RuntimeException
{
    /** @param list<TaskInfo> $tasks the tasks that wait, oldest first; empty outside `run()` */
    public function __construct(string $message, public readonly array $tasks = [])
    {
        parent::__construct($message);
    }
}
