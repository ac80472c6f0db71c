<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Queue;

use Weft\Bus\SendOptions;

/** Where a job was taken from, and goes back to. */
interface Source
{
    /** A name of the message that stays the same when it is redelivered. */
    public function id(): string;

    /** The job is done. */
    public function acknowledge(): void;

    /** The job is done, and this one is to be tried later. */
    public function replace(QueuedJob $message, ?SendOptions $options): void;
}
