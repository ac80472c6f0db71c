<?php

declare(strict_types=1);

namespace Weft\Grpc\Client;

use Weft\Internal\Number;

/**
 * Stops retries when too many calls fail (gRFC A6). A channel starts with `$maxTokens` tokens. A retryable failure takes one, a success
 * returns `$tokenRatio`. While at most half of the tokens are left, nothing is retried.
 */
final class RetryThrottling
{
    /** @throws \ValueError for a value out of its bounds */
    public function __construct(public readonly float $maxTokens, public readonly float $tokenRatio)
    {
        if (!($maxTokens > 0) || $maxTokens > 1_000 || !($tokenRatio > 0)) {
            throw new \ValueError('maxTokens must be above 0 and not above 1000, tokenRatio above 0, got ' . Number::text($maxTokens) . ' and ' . Number::text($tokenRatio));
        }
    }
}
