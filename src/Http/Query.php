<?php

declare(strict_types=1);

namespace Weft\Http;

/**
 * The parameter of a handler that gets a query parameter: `string`, `int`, `float`, `bool` (`true`, `false`, `1`, `0`), a backed enum, a
 * `DateTimeImmutable` (RFC 3339), one of these or null, or an array that `@param` documents as `list<T>` of them (`?tag=a&tag=b`).
 *
 * A class gets one query parameter for each of its properties, and can be checked by `#[Validate]`.
 *
 * ```
 * $routes->get('/orders', fn (#[Query] int $page = 1, #[Query('sort')] Order $order = Order::Newest) => …);
 * ```
 *
 * A missing parameter takes its default, or is null if it may be; otherwise, or if it has another type, the response is 400.
 */
#[\Attribute(\Attribute::TARGET_PARAMETER)]
final class Query
{
    /** @param string|null $name by default that of the parameter */
    public function __construct(public readonly ?string $name = null)
    {
    }
}
