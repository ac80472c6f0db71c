<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

use Weft\Bus\DuplicateHandler;

/**
 * Who handles what: one handler per command, any number of listeners per event.
 *
 * @internal
 */
final class Handlers
{
    /** @var array<string, non-empty-list<Handler>> by message type */
    private array $byType = [];

    /** @throws DuplicateHandler */
    public function add(Handler $handler): void
    {
        $type = $handler->message->type;
        $first = $this->byType[$type][0] ?? null;
        if ($first !== null && $first->kind !== $handler->kind) {
            throw new DuplicateHandler("{$handler->message->class} is both {$first->kind->value} for {$first->name}() and "
                . "{$handler->kind->value} for {$handler->name}(); a message is one or the other");
        }
        if ($first !== null && $handler->kind === Kind::Command) {
            throw new DuplicateHandler("Command {$handler->message->class} has two handlers, {$first->name}() and "
                . "{$handler->name}(); a command has exactly one");
        }
        $this->byType[$type][] = $handler;
    }

    /** @return list<Handler> */
    public function of(string $type): array
    {
        return $this->byType[$type] ?? [];
    }

    /** @return list<string> */
    public function types(): array
    {
        return \array_map('strval', \array_keys($this->byType));
    }
}
