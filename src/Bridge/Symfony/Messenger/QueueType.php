<?php

declare(strict_types=1);

namespace Weft\Bridge\Symfony\Messenger;

use Weft\Bus\Internal\QueueClasses;

/**
 * The command and the handler of one queue of Messenger, see {@see QueueClasses}.
 *
 * @internal
 */
final class QueueType
{
    /** @return class-string<Packed> */
    public static function message(string $queue): string
    {
        /** @var class-string<Packed> */
        return self::declared($queue) . '\Message';
    }

    /** @return class-string<Handler> */
    public static function handler(string $queue): string
    {
        /** @var class-string<Handler> */
        return self::declared($queue) . '\MessageHandler';
    }

    /** The namespace of the two classes. */
    private static function declared(string $queue): string
    {
        if (\preg_match('/^[\w.-]{1,150}$/D', $queue) !== 1) {
            throw new \ValueError("The queue of weft://$queue must have a name of 1 to 150 letters, digits, dots, hyphens and underscores");
        }

        return QueueClasses::declare(__NAMESPACE__, $queue, "symfony.messenger.$queue", Packed::class, Handler::class);
    }
}
