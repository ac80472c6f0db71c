<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

use Psr\Log\LoggerInterface;

/**
 * Work that belongs to no server, such as the messages of a consumer. The log names it when it has ended the process.
 *
 * @internal
 */
interface InterruptedWork
{
    /** Names the work of the task, such as `Message app.Pay 0198… in Orders::pay`; null where the task does not work for it. */
    public function describe(Coroutine $task): ?string;

    /** The end of a sentence about the work in progress when the process ends, such as `messages in flight are redelivered`. */
    public function outcome(): string;

    public function logger(): LoggerInterface;
}
