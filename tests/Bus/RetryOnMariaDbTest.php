<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

/** Retries that wait in MariaDB. */
final class RetryOnMariaDbTest extends RetryTest
{
    protected const SERVER = 'WEFT_MYSQL_DSN';

    public static function buses(): iterable
    {
        yield 'RabbitMQ and MariaDB or MySQL' => [\iterator_to_array(parent::buses())['RabbitMQ and PostgreSQL'][0]];
    }
}
