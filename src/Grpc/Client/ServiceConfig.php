<?php

declare(strict_types=1);

namespace Weft\Grpc\Client;

use Weft\Grpc\Internal\ServiceConfigReader;

/** Load balancing, retries and timeouts of a channel. */
final class ServiceConfig
{
    private readonly MethodConfig $default;

    /**
     * @param Balancing $balancing to which of several addresses calls go. Change it to spread calls over servers of the same rank
     * @param array<string, MethodConfig> $methods by `package.Service/Method`, by `package.Service`, or `''` for all others; the most
     *     specific entry applies. Set it for retries, and for methods that are slower than the others
     * @param RetryThrottling|null $throttling stops retries while most calls fail; null: retries are not throttled. Set it where retries would
     *     burden servers that are overloaded already
     */
    public function __construct(
        public readonly Balancing $balancing = Balancing::PickFirst,
        public readonly array $methods = [],
        public readonly ?RetryThrottling $throttling = null,
    ) {
        $this->default = $methods[''] ?? new MethodConfig();
    }

    /**
     * Reads the JSON format of other gRPC clients (`grpc.service_config.ServiceConfig`): `loadBalancingConfig` or `loadBalancingPolicy`,
     * `methodConfig` with `timeout`, `waitForReady` and `retryPolicy`, `retryThrottling`. Other entries are ignored, among them
     * `hedgingPolicy`, `maxRequestMessageBytes` and `maxResponseMessageBytes`: `messageBytes` of the channel's options limits messages.
     *
     * @throws \ValueError names the invalid entry
     */
    public static function fromJson(string $json): self
    {
        return (new ServiceConfigReader())->read($json);
    }

    /** @param string $path `/package.Service/Method` */
    public function method(string $path): MethodConfig
    {
        if ($this->methods === []) {
            return $this->default;
        }
        $name = \substr($path, 1);

        return $this->methods[$name] ?? $this->methods[\explode('/', $name, 2)[0]] ?? $this->default;
    }
}
