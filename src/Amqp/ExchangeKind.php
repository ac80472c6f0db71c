<?php

declare(strict_types=1);

namespace Weft\Amqp;

/** How an exchange picks the queues of a message. A plugin's kind is given by its name instead. */
enum ExchangeKind: string
{
    /** Those bound with exactly the message's routing key. */
    case Direct = 'direct';
    /** All that are bound. */
    case Fanout = 'fanout';
    /** Those whose binding matches word by word: `*` is one word, `#` any number. */
    case Topic = 'topic';
    /** Those whose binding's arguments match the message's headers. */
    case Headers = 'headers';
}
