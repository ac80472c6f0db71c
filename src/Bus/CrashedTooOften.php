<?php

declare(strict_types=1);

namespace Weft\Bus;

/** Whoever handled the message went away without an answer, time and again: it is parked before it takes the next one along. */
final class CrashedTooOften extends BusException {}
