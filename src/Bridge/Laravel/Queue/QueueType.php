<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Queue;

/**
 * The command and the handler of one queue. The bus routes by type, and each queue of Laravel has jobs of its own: the name of the queue
 * is a part of the type's. It is known only when a job is pushed, so these two classes are declared then.
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
        $namespace = __NAMESPACE__ . '\Queue' . \bin2hex($queue);
        if (!\class_exists("$namespace\\Message", false)) {
            eval("namespace $namespace;"
                . "#[\\Weft\\Bus\\MessageType('laravel.job.$queue')] final class Message extends \\" . QueuedJob::class . ' {}'
                . 'final class MessageHandler extends \\' . Handler::class . ' {'
                . '#[\\Weft\\Bus\\CommandHandler] public function handle(Message $message, \\Weft\\Bus\\Context $context): void { $this->process($message, $context); } }');
        }

        return $namespace;
    }
}
