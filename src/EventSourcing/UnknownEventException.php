<?php

declare(strict_types=1);

namespace Weft\EventSourcing;

use Weft\Bus\Unrecoverable;

/** A stored event has a type without a known class, or a newer version than its class. */
final class UnknownEventException extends EventSourcingException implements Unrecoverable {}
