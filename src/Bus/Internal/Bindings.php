<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

use Weft\Bus\Transport\Outgoing;

/**
 * Which messages have a queue, for transports that keep the bindings of types in a table.
 *
 * @internal
 */
final class Bindings
{
    /**
     * @param list<Outgoing> $messages
     * @return list<string> the types that must have a queue
     */
    public static function requiredTypes(array $messages): array
    {
        return \array_values(\array_unique(\array_column(\array_filter($messages, static fn(Outgoing $message): bool => $message->mustRoute), 'type')));
    }

    /**
     * @param list<Outgoing> $messages
     * @param list<string>   $routed types that have a queue
     * @return Outgoing|null the first that must be routed and has no queue
     */
    public static function firstUnrouted(array $messages, array $routed): ?Outgoing
    {
        $routed = \array_flip($routed);
        foreach ($messages as $message) {
            if ($message->mustRoute && !isset($routed[$message->type])) {
                return $message;
            }
        }

        return null;
    }
}
