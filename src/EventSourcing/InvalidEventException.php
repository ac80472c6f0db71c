<?php

declare(strict_types=1);

namespace Weft\EventSourcing;

use Weft\Bus\Unrecoverable;

/** A stored event or snapshot does not match its class: an upcaster is missing. */
final class InvalidEventException extends EventSourcingException implements Unrecoverable {}
