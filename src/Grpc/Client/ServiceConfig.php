<?php

declare(strict_types=1);

namespace Weft\Grpc\Client;

use Weft\Grpc\Internal\ServiceConfigReader;

/** How a channel treats its servers and methods. */
final class ServiceConfig
{
    private readonly MethodConfig $default;

    /**
     * @param array<string, MethodConfig> $methods by `package.Service/Method`, by `package.Service`, or `''` for all others; the most
     *     exact one counts
     */
    public function __construct(
        public readonly Balancing $balancing = Balancing::PickFirst,
        public readonly array $methods = [],
        public readonly ?RetryThrottling $throttling = null,
    ) {
        $this->default = $methods[''] ?? new MethodConfig();
    }

    /**
     * Of the JSON that gRPC's other clients take (`grpc.service_config.ServiceConfig`): `loadBalancingConfig`, `methodConfig` with
     * `timeout`, `waitForReady` and `retryPolicy`, `retryThrottling`. What is not known here is passed over, hedging included.
     *
     * @throws \ValueError what is wrong, and where
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
