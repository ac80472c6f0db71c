<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

/**
 * Is notified when a task ends.
 *
 * @internal
 */
interface CompletionListener
{
    public function taskEnded(): void;
}
