<?php

declare(strict_types=1);

namespace Weft\Bus;

/**
 * Marks a public method as a listener of the event class that is the type of its first parameter. An event has any number of listeners.
 *
 * The listeners of an event run one after the other, each also when another has failed, and each in its own transaction if it has a
 * `Weft\Sql\Transaction` parameter. Further parameters are resolved as for {@see CommandHandler}.
 */
#[\Attribute(\Attribute::TARGET_METHOD)]
final class EventListener {}
