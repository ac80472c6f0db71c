<?php

declare(strict_types=1);

namespace Weft\Internal;

use Weft\Http\InvalidAddressError;

/**
 * The address of an endpoint of metrics, checked before it is opened, because the system's message does not say how to write one.
 *
 * @internal
 */
final class MetricsAddress
{
    /** @throws InvalidAddressError */
    public static function checked(string $address): string
    {
        return \preg_match('/^(?:\[[^\[\]\s]+\]|[^:\[\]\s]+):\d{1,5}$/D', $address) === 1
            ? $address
            : throw new InvalidAddressError("\"$address\" is not an address for metrics: write HOST:PORT or [IPV6]:PORT, such as 127.0.0.1:9464");
    }
}
