<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

/**
 * The command and the handler of one queue of another library, such as Symfony Messenger or Laravel. The bus routes by type, and each of these
 * queues has messages of its own: the name of the queue is a part of the type's. It is known at run time, so these two classes are
 * declared then.
 *
 * @internal
 */
final class QueueClasses
{
    /**
     * Declares the classes `Message` and `MessageHandler` of a queue, once.
     *
     * @param string $namespace of the library's bridge
     * @param string $queue checked by the caller
     * @param string $type of the messages, without quotes
     * @param class-string $message what `Message` extends
     * @param class-string $handler what `MessageHandler` extends; it has `process(object $message, Context $context)`
     *
     * @return string their namespace
     */
    public static function declare(string $namespace, string $queue, string $type, string $message, string $handler): string
    {
        $own = "$namespace\\Queue" . \bin2hex($queue);
        if (!\class_exists("$own\\Message", false)) {
            eval("namespace $own;"
                . "#[\\Weft\\Bus\\MessageType('$type')] final class Message extends \\$message {}"
                . "final class MessageHandler extends \\$handler {"
                . '#[\\Weft\\Bus\\CommandHandler] public function handle(Message $message, \\Weft\\Bus\\Context $context): void { $this->process($message, $context); } }');
        }

        return $own;
    }
}
