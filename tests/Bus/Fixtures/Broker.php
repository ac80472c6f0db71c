<?php

declare(strict_types=1);

namespace Weft\Tests\Bus\Fixtures;

/** A RabbitMQ of its own, for tests that restart it or bring it into trouble. */
final class Broker
{
    public readonly string $url;

    private readonly ServerScript $services;

    public function __construct()
    {
        $this->services = new ServerScript('services');
        $this->services->run('start', 'rabbitmq');
        $environment = (string) \file_get_contents("{$this->services->directory}/services/env");
        $this->url = \preg_match("/AMQP_URL='([^']+)'/", $environment, $match) === 1 ? $match[1] : '';
    }

    /** Stops it in order and starts it again, while other tasks go on. Call it inside `Weft\run()`. */
    public function restart(): void
    {
        $this->services->runBeside('restart', 'rabbitmq');
    }

    /** @return string what rabbitmqctl says; nothing else goes on meanwhile */
    public function control(string ...$arguments): string
    {
        return $this->services->run('rabbitmqctl', '-q', ...$arguments);
    }

    public function remove(): void
    {
        $this->services->remove();
    }
}
