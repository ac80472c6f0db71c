<?php

declare(strict_types=1);

namespace Weft\Tests\Chaos;

final class RabbitMqTest extends ChaosTestCase
{
    protected function transport(): string
    {
        return 'rabbitmq';
    }

    protected function faults(): int
    {
        return 8;
    }
}
