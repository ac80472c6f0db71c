<?php

declare(strict_types=1);

namespace Weft\Bus;

/** A command was sent for which no queue is declared, so that nobody could ever handle it. */
final class UnroutableMessage extends BusException {}
