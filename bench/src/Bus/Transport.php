<?php

declare(strict_types=1);

namespace Weft\Bench\Bus;

enum Transport: string
{
    case RabbitMq = 'rabbitmq';
    case Postgres = 'postgres';
    case Sqlite = 'sqlite';
}
