<?php

declare(strict_types=1);

namespace Weft\Grpc\Internal;

use Weft\Grpc\Client\RetryThrottling;

/**
 * The retry tokens of a channel, see {@see RetryThrottling}.
 *
 * @internal
 */
final class RetryThrottle
{
    private float $left;

    public function __construct(private readonly RetryThrottling $throttling)
    {
        $this->left = $throttling->maxTokens;
    }

    public function succeeded(): void
    {
        $this->left = \min($this->left + $this->throttling->tokenRatio, $this->throttling->maxTokens);
    }

    /** Whether a retry is allowed. */
    public function failed(): bool
    {
        $this->left = \max($this->left - 1, 0.0);

        return $this->left > $this->throttling->maxTokens / 2;
    }
}
