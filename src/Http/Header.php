<?php

declare(strict_types=1);

namespace Weft\Http;

/**
 * The parameter of a handler that gets a header field, with the types of {@see Query} except arrays and classes. Several fields of one
 * name are joined by `, `.
 *
 * A missing field takes its default, or is null if it may be; otherwise, or if it has another type, the response is 400.
 */
#[\Attribute(\Attribute::TARGET_PARAMETER)]
final class Header
{
    /** @param string|null $name by default that of the parameter, `$ifMatch` as `if-match` */
    public function __construct(public readonly ?string $name = null)
    {
    }
}
