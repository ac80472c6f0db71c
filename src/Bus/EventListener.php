<?php

declare(strict_types=1);

namespace Weft\Bus;

/**
 * Marks a public method as a listener of the events that are the type of its first parameter: a class, several of them (`Placed|Cancelled`),
 * an interface, a base class, or `object` with a pattern of type names. An event has any number of listeners.
 *
 * An interface, a base class or a pattern stands for the message classes that the bus knows: those of its handlers and of
 * {@see MessageOptions::$classes}, without its commands and queries. A method is called once for an event, in however many ways it fits.
 *
 * The listeners of an event run one after the other, each also when another has failed, and each in its own transaction if it has a
 * `Weft\Sql\Transaction` parameter. Further parameters are resolved as for {@see CommandHandler}.
 *
 * ```php
 * #[EventListener]
 * public function project(OrderEvent $event): void                  // an interface
 *
 * #[EventListener(types: 'shop.order.*')]
 * public function audit(object $event, Context $context): void
 * ```
 */
#[\Attribute(\Attribute::TARGET_METHOD)]
final class EventListener
{
    /** @param string|null $types only events with such a type name; `*` stands for any characters. Null for all */
    public function __construct(public readonly ?string $types = null)
    {
        $types !== '' || throw new \ValueError('The pattern of an EventListener must not be empty');
    }
}
