<?php

declare(strict_types=1);

namespace Weft\Internal;

/**
 * Adds the place of the documentation to the text of an exception, which PHP prints when nothing catches it. For the base class of each
 * family of exceptions.
 *
 * @internal
 */
trait Documented
{
    /** Class, message, stack and previous exceptions as PHP writes them, then where to read about the cause. */
    public function __toString(): string
    {
        $documentation = ErrorDocumentation::of($this);

        return parent::__toString() . ($documentation === null ? '' : "\nHelp: {$documentation->location()}");
    }
}
