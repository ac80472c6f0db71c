<?php

declare(strict_types=1);

namespace Weft\Http;

/**
 * The proxies in front of a server, which say for which client they act. Then `scheme()`, `host()`, `clientAddress()` and `clientPort()` of
 * a request are those of that client.
 *
 * ```
 * $app->http('0.0.0.0:8080', proxies: new TrustedProxies(['10.0.0.0/8', 'fd00::/8']));
 * ```
 *
 * Lists of addresses are read from their end, where the nearest proxy writes, up to the first address that is no proxy: what a client
 * writes itself is never believed. Connections of proxies have no client share (see {@see Limits}).
 */
final class TrustedProxies
{
    /**
     * @param non-empty-list<string> $addresses of the proxies: IPv4 and IPv6 addresses, networks (`10.0.0.0/8`), and `unix` for whatever
     *     connects to a Unix socket. An IPv4 address mapped to IPv6 is that IPv4 address (`::ffff:10.0.0.0/104` is `10.0.0.0/8`).
     * @param ForwardedFields $fields the header fields that these proxies set, replacing or extending those of the client; they must do so
     *     with every request
     * @param bool $proxyProtocol every connection of these proxies begins with a header of the PROXY protocol, version 1 or 2, before TLS.
     *     The address in it is then that of the peer, which may be a proxy as well.
     *
     * @throws \ValueError an address is malformed
     */
    public function __construct(
        public readonly array $addresses,
        public readonly ForwardedFields $fields = ForwardedFields::XForwarded,
        public readonly bool $proxyProtocol = false,
    ) {
        if ($addresses === []) {
            throw new \ValueError('TrustedProxies need at least one address');
        }
        foreach ($addresses as $address) {
            self::isRange($address) || throw new \ValueError((string) \json_encode($address) . ' is neither an IP address, a network such as 10.0.0.0/8, nor "unix"');
        }
    }

    private static function isRange(string $address): bool
    {
        $parts = \explode('/', $address, 2);
        if (\filter_var($parts[0], \FILTER_VALIDATE_IP) === false) {
            return $address === 'unix';
        }
        $width = \str_contains($address, ':') ? 128 : 32;
        // IPv4 addresses that are mapped to IPv6 (RFC 4291 §2.5.5.2) share their first 96 bits.
        $least = \str_starts_with((string) \inet_pton($parts[0]), \str_repeat("\0", 10) . "\xff\xff") ? 96 : 0;

        return !isset($parts[1]) || \preg_match('/^\d{1,3}$/D', $parts[1]) === 1 && (int) $parts[1] <= $width && (int) $parts[1] >= $least;
    }
}
