<?php

declare(strict_types=1);

namespace Weft\Bus;

/**
 * Marks a public method as a listener of the event class that its first parameter names; an event has none to many.
 *
 * Listeners of one event run one after the other, each whether or not another failed, and each in a transaction of its
 * own where it has a `Weft\Sql\Transaction` parameter. Further parameters are found as for {@see CommandHandler}.
 */
#[\Attribute(\Attribute::TARGET_METHOD)]
final class EventListener {}
