<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Queue;

use Weft\Bus\Internal\QueueClasses;

/**
 * The command and the handler of one queue of Laravel, see {@see QueueClasses}.
 *
 * @internal
 */
final class QueueType
{
    /** @return class-string<QueuedJob> */
    public static function message(string $queue): string
    {
        /** @var class-string<QueuedJob> */
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
        if (\preg_match('/^[\w.:-]{1,150}$/D', $queue) !== 1) {
            throw new \ValueError("The queue \"$queue\" must have a name of 1 to 150 letters, digits, dots, colons, hyphens and underscores");
        }

        return QueueClasses::declare(__NAMESPACE__, $queue, "laravel.job.$queue", QueuedJob::class, Handler::class);
    }
}
