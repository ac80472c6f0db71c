<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

/**
 * A group that hears what its tasks print.
 *
 * @internal
 */
interface OutputListener
{
    /** `$task`, a member, or a task below it has printed `$text` outside of any buffer of its own. */
    public function printed(Coroutine $task, string $text): void;
}
