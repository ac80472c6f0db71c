<?php

declare(strict_types=1);

namespace Weft\Http;

/**
 * The status of what a handler returns, if that is an object or an array: `#[Status(201)] fn (#[Body] PlaceOrder $order): Order => …`.
 */
#[\Attribute(\Attribute::TARGET_FUNCTION | \Attribute::TARGET_METHOD)]
final class Status
{
    /** @param int $code 200 to 299 */
    public function __construct(public readonly int $code)
    {
        if ($code < 200 || $code > 299) {
            throw new \ValueError("The status of a handler must be from 200 to 299, got $code; throw an HttpException for a failure");
        }
    }
}
