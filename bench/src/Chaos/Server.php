<?php

declare(strict_types=1);

namespace Weft\Bench\Chaos;

use Weft\Bench\Services;

use function Weft\delay;

/** A server of this run alone, behind a proxy. */
final class Server
{
    private readonly Proxy $proxy;
    private readonly string $url;

    /**
     * @param string $directory its WEFT_VAR
     * @param string $service as scripts/services knows it
     * @param string $variable with its URL
     */
    public function __construct(
        private readonly string $root,
        private readonly string $directory,
        private readonly string $log,
        private readonly string $service,
        string $variable,
    ) {
        $this->services('start', $service);
        $this->url = Services::read("{$directory}/services/env")[$variable];
        $this->proxy = new Proxy((int) parse_url($this->url, PHP_URL_PORT));
    }

    /** Through the proxy. */
    public function url(): string
    {
        return (string) preg_replace('~@[^/]+:\d+~', "@127.0.0.1:{$this->proxy->port}", $this->url);
    }

    public function directUrl(): string
    {
        return $this->url;
    }

    public function restart(float $down): string
    {
        $this->services('stop', $this->service);
        delay($down);
        $this->services('start', $this->service);

        return "{$this->service} stopped and started";
    }

    public function cut(): string
    {
        return "{$this->proxy->cut()} connections to {$this->service} cut";
    }

    /** @param float $more seconds for every byte, for so many `$seconds` */
    public function slow(float $more, float $seconds): string
    {
        $this->proxy->slow($more);
        delay($seconds);
        $this->proxy->slow(0.0);

        return sprintf('every byte to %s took %d ms more for %.1f s', $this->service, 1000 * $more, $seconds);
    }

    public function close(): void
    {
        $this->proxy->stop();
        $this->services('stop', $this->service);
    }

    public function services(string ...$arguments): void
    {
        Command::run(["{$this->root}/scripts/services", ...$arguments], ['WEFT_VAR' => $this->directory], $this->log);
    }
}
