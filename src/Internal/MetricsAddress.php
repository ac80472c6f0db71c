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
    private const MAX_PORT = 65_535;

    /** @throws InvalidAddressError */
    public static function checked(string $address): string
    {
        if (\preg_match('/^(?:\[[^\[\]\s]+\]|[^:\[\]\s]+):(\d{1,5})$/D', $address, $found) !== 1) {
            throw new InvalidAddressError("\"$address\" is not an address for metrics: write HOST:PORT or [IPV6]:PORT, such as 127.0.0.1:9464");
        }
        if ((int) $found[1] > self::MAX_PORT) {
            throw new InvalidAddressError("\"$address\" is not an address for metrics: its port must be at most " . self::MAX_PORT);
        }

        return $address;
    }
}
