<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Handlers;

use Weft\Bus\DuplicateHandlerError;
use Weft\Bus\Internal\Codec\Codec;
use Weft\Bus\Internal\MessageKind;
use Weft\Bus\InvalidHandlerError;

/**
 * The registered handlers: one per command and query, any number of listeners per event.
 *
 * @internal
 */
final class Handlers
{
    /** @var array<string, non-empty-list<Handler>> by message type */
    private array $byType = [];

    /** @var array<string, list<Handler>> with what runs around them, by message type; made when first needed */
    private array $ready = [];

    /** Whether any handler is a batch handler. */
    public bool $hasBatches = false;

    /** Whether any handler has ordered messages. */
    public bool $hasOrdered = false;

    /** @var array<string, true> of those registered, with wide listeners */
    private array $names = [];

    /** @var list<WideListener> */
    private array $wide = [];

    /** @var array<string, int> how many handlers of a type are those of wide listeners */
    private array $expanded = [];

    /** How many classes the codec knew when the wide listeners were matched with them. */
    private int $matched = 0;

    public function __construct(
        private readonly Pipeline $pipeline,
        private readonly Codec $codec,
    ) {}

    /**
     * Registers all of them, or none.
     *
     * @param list<Handler|WideListener> $handlers those of one service or saga
     * @throws DuplicateHandlerError|InvalidHandlerError
     */
    public function register(array $handlers): void
    {
        $first = [];
        foreach ($handlers as $handler) {
            if (isset($this->names[$handler->name])) {
                throw new DuplicateHandlerError("Handler {$handler->name}() is registered twice; the inbox and retries know a listener by its class and method, so each object needs a class of its own");
            }
            if ($handler instanceof Handler) {
                $type = $handler->message->type;
                self::check($handler, $this->firstBeside($handler) ?? $first[$type] ?? null);
                $first[$type] ??= $handler;
            }
        }
        foreach ($handlers as $handler) {
            $this->names[$handler->name] = true;
            $handler instanceof Handler ? $this->add($handler) : $this->wide[] = $handler;
        }
        // Wide listeners are matched again.
        $this->matched = 0;
    }

    /** The first handler of its message that stays when this one is added. */
    private function firstBeside(Handler $handler): ?Handler
    {
        return $this->replacesWideListeners($handler) ? null : $this->byType[$handler->message->type][0] ?? null;
    }

    /** Wide listeners do not listen to commands and queries. */
    private function replacesWideListeners(Handler $handler): bool
    {
        $type = $handler->message->type;

        return $handler->kind !== MessageKind::Event && ($this->expanded[$type] ?? 0) === \count($this->byType[$type] ?? []);
    }

    /** @throws DuplicateHandlerError|InvalidHandlerError when it cannot be registered after the first handler of its message */
    private static function check(Handler $handler, ?Handler $first): void
    {
        if ($first !== null && $first->kind !== $handler->kind) {
            throw new DuplicateHandlerError("{$handler->message->class} is both {$first->kind->value} for {$first->name}() and "
                . "{$handler->kind->value} for {$handler->name}(); a message is either a command, a query or an event");
        }
        $name = \ucfirst($handler->kind->value);
        if ($first !== null && $handler->kind !== MessageKind::Event) {
            throw new DuplicateHandlerError("{$name} {$handler->message->class} has two handlers, {$first->name}() and "
                . "{$handler->name}(); a {$handler->kind->value} has exactly one");
        }
        if ($first !== null && ($first->attributes->batch ?? $handler->attributes->batch) !== null) {
            throw new DuplicateHandlerError("{$handler->message->class} has a batch handler and another one, {$first->name}() and {$handler->name}(); a batch handler must be the only one");
        }
        if ($handler->attributes->batch !== null && $handler->message->policy?->isOrdered()) {
            throw new InvalidHandlerError("Handler {$handler->name}() takes batches of {$handler->message->class}, which are ordered and handled one at a time");
        }
    }

    private function add(Handler $handler): void
    {
        $type = $handler->message->type;
        if ($this->replacesWideListeners($handler)) {
            unset($this->byType[$type], $this->expanded[$type]);
            $handler->message->handler = null;
        }
        $this->byType[$type][] = $handler;
        $handler->message->handler ??= $handler;
        $this->hasOrdered = $this->hasOrdered || $handler->message->policy?->isOrdered() === true;
        $this->hasBatches = $this->hasBatches || $handler->attributes->batch !== null;
        unset($this->ready[$type]);
    }

    /** @return list<Handler> */
    public function of(string $type): array
    {
        if ($this->wide !== [] && $this->matched !== $this->codec->count()) {
            $this->match();
        }

        return $this->ready[$type] ?? $this->prepare($type);
    }

    /** @return list<Handler> in the order of their registration, those of a message together */
    public function all(): array
    {
        $this->match();

        return \array_merge([], ...\array_values($this->byType));
    }

    /** @return list<string> */
    public function types(): array
    {
        $this->match();

        return \array_map('strval', \array_keys($this->byType));
    }

    /** @return list<WideListener> those that no message class fits */
    public function unmatched(): array
    {
        $this->match();

        return \array_values(\array_filter($this->wide, static fn(WideListener $listener): bool => !$listener->hasMatched));
    }

    /** Makes a handler of each wide listener for each class that fits and is not a command or a query. */
    private function match(): void
    {
        if ($this->wide === [] || $this->matched === $this->codec->count()) {
            return;
        }
        foreach ($this->codec->known() as $class) {
            $handlers = $this->byType[$class->type] ?? [];
            if (($handlers[0]->kind ?? MessageKind::Event) !== MessageKind::Event) {
                continue;
            }
            $names = \array_map(static fn(Handler $handler): string => $handler->name, $handlers);
            foreach ($this->wide as $listener) {
                if (!$listener->fits($class)) {
                    continue;
                }
                $listener->hasMatched = true;
                if (!\in_array($listener->name, $names, true)) {
                    $names[] = $listener->name;
                    $handler = ($listener->make)($class);
                    self::check($handler, $this->firstBeside($handler));
                    $this->add($handler);
                    $this->expanded[$class->type] = ($this->expanded[$class->type] ?? 0) + 1;
                }
            }
        }
        $this->matched = $this->codec->count();
    }

    /** @return list<Handler> */
    private function prepare(string $type): array
    {
        return isset($this->byType[$type]) ? $this->ready[$type] = \array_map($this->pipeline->around(...), $this->byType[$type]) : [];
    }
}
