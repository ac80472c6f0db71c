<?php

declare(strict_types=1);

namespace Weft\Http;

use Weft\Http\Internal\PositiveLimits;

/** Limits of the header of a request; see {@see Limits}. */
final class HeaderLimits
{
    /**
     * @param int $count the maximum number of header fields, at least 1; more are answered 431. Raise it behind proxies that add many fields
     * @param int $bytes bytes of request line and fields, at least 8,192; more are answered 431. Raise it for large cookies or tokens
     * @param float $timeout seconds from the first byte of a request to the end of its header, above 0. Lower it against slow clients
     *
     * @throws \ValueError for a value out of its bounds
     */
    public function __construct(
        public readonly int $count = 100,
        public readonly int $bytes = 16_384,
        public readonly float $timeout = 10.0,
    ) {
        PositiveLimits::check('header.', $this);
        if ($bytes < 8_192) {
            throw new \ValueError("The limit header.bytes must be at least 8192, got $bytes");
        }
    }
}
