<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

/**
 * A group that receives the output of its tasks.
 *
 * @internal
 */
interface OutputListener
{
    /** `$task`, a member of the group, or a child task of it has printed `$text` outside of its own buffers. */
    public function printed(Coroutine $task, string $text): void;
}
