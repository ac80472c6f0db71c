<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

/** Inbox and outbox in MariaDB. */
final class InboxOutboxOnMariaDbTest extends InboxOutboxTest
{
    protected const SERVER = 'WEFT_MYSQL_DSN';
}
