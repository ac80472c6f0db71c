<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

/** Messages that wait in MariaDB. */
final class DelayOnMariaDbTest extends DelayTest
{
    protected const SERVER = 'WEFT_MYSQL_DSN';

    public static function buses(): iterable
    {
        yield 'RabbitMQ and MariaDB' => [\iterator_to_array(parent::buses())['RabbitMQ and PostgreSQL'][0]];
    }

    public static function busesAndDelayQueues(): iterable
    {
        return self::buses();
    }
}
