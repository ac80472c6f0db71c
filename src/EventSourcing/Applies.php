<?php

declare(strict_types=1);

namespace Weft\EventSourcing;

/**
 * Marks a method of an aggregate, of any visibility, that applies the event of its only parameter to the properties. It runs when the
 * event is recorded and whenever the aggregate is loaded, so it must not throw and must have no other effect.
 */
#[\Attribute(\Attribute::TARGET_METHOD)]
final class Applies {}
