<?php

declare(strict_types=1);

namespace App;

use Symfony\Component\Messenger\Bridge\Amqp\Transport\AmqpStamp;

/** How messages are published. Without a stamp the transport makes every message persistent. */
enum Delivery: int
{
    case Transient = 1;
    case Persistent = 2;

    public function stamp(): AmqpStamp
    {
        return new AmqpStamp(attributes: ['delivery_mode' => $this->value]);
    }
}
