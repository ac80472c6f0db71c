<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

/** MariaDB goes away. */
final class DatabaseOutageOnMariaDbTest extends DatabaseOutageTest
{
    protected const SERVER = 'WEFT_MYSQL_DSN';

    public static function brokers(): iterable
    {
        yield 'RabbitMQ' => [\iterator_to_array(parent::brokers())['RabbitMQ'][0]];
    }
}
