<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

/**
 * Something that has to know when a task ends.
 *
 * @internal
 */
interface CompletionListener
{
    public function taskEnded(): void;
}
