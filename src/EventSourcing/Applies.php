<?php

declare(strict_types=1);

namespace Weft\EventSourcing;

/**
 * Marks a method of an aggregate, of any visibility, that changes its properties as the event of its one parameter says. It
 * runs when the event is recorded and each time the aggregate is loaded, so it must not refuse and have no other effect.
 */
#[\Attribute(\Attribute::TARGET_METHOD)]
final class Applies {}
