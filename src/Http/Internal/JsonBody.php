<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Weft\Http\PayloadTooLargeException;
use Weft\Internal\Codec\JsonMemory;

/**
 * A body to decode from JSON.
 *
 * @internal
 */
final class JsonBody
{
    /** @throws PayloadTooLargeException its values would take too much memory */
    public static function checked(string $body): string
    {
        $problem = JsonMemory::problem($body, JsonMemory::limit($body));

        return $problem === null ? $body : throw new PayloadTooLargeException("The body {$problem}");
    }
}
