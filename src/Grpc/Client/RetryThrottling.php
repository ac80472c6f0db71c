<?php

declare(strict_types=1);

namespace Weft\Grpc\Client;

/**
 * Keeps clients from drowning a server that is failing. A channel begins with `$maxTokens`; a failure that could be retried takes
 * one, a success gives `$tokenRatio` back, and nothing is retried while half of them or less are left.
 */
final class RetryThrottling
{
    public function __construct(public readonly float $maxTokens, public readonly float $tokenRatio)
    {
        if ($maxTokens <= 0 || $maxTokens > 1_000 || $tokenRatio <= 0) {
            throw new \ValueError("maxTokens must be above 0 and not above 1000, tokenRatio above 0, got $maxTokens and $tokenRatio");
        }
    }
}
