<?php

declare(strict_types=1);

namespace Weft\Bench\Bus;

use Weft\Bench\BenchmarkException;
use Weft\Bench\Build;
use Weft\Bench\Versions;

/** Builds the contenders and reports their versions. */
final class Toolchain
{
    /**
     * @param string $root the repository
     * @param string|null $serviceBus directory of php-service-bus
     */
    public function __construct(private readonly string $root, private readonly ?string $serviceBus = null)
    {
    }

    /**
     * @param string $program where it is put
     *
     * @throws BenchmarkException
     */
    public function buildGo(string $program): void
    {
        Build::go($this->goDirectory(), $program);
    }

    /** @return array<string, string> by product */
    public function versions(): array
    {
        return array_filter([
            'weft' => Versions::weft($this->root),
            'php' => PHP_VERSION,
            'ext-amqp' => (string) phpversion('amqp'),
            'symfony-messenger' => Versions::package('php-symfony-messenger'),
            'doctrine-dbal' => Versions::package('php-doctrine-dbal'),
            'php-service-bus' => $this->composer('php-service-bus/service-bus'),
            'ridge' => $this->composer('phpinnacle/ridge'),
            'amphp-postgres' => $this->composer('amphp/postgres'),
            'rustc' => Versions::of('rustc --version'),
            'go' => Versions::of('go version'),
            'amqp091-go' => Versions::module("{$this->goDirectory()}/go.mod", 'rabbitmq/amqp091-go'),
            'pgx' => Versions::module("{$this->goDirectory()}/go.mod", 'jackc/pgx/v5'),
        ]);
    }

    private function composer(string $package): string
    {
        return $this->serviceBus === null ? '' : Versions::composer($this->serviceBus, $package);
    }

    private function goDirectory(): string
    {
        return "{$this->root}/bench/bus/peers/go";
    }
}
