<?php

declare(strict_types=1);

namespace Weft\Http;

/**
 * The parameter of a handler that gets a path parameter: `string`, `int`, `float`, or a backed enum. A value of another type is not found.
 *
 * Without the attribute a parameter gets the path parameter of its name as well; the attribute is for another name, and says that it
 * must be in the path.
 */
#[\Attribute(\Attribute::TARGET_PARAMETER)]
final class Path
{
    /** @param string|null $name by default that of the parameter */
    public function __construct(public readonly ?string $name = null)
    {
    }
}
