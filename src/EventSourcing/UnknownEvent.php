<?php

declare(strict_types=1);

namespace Weft\EventSourcing;

use Weft\Bus\Unrecoverable;

/** A recorded event is of a type that no class is known for, or of a newer version than its class. */
final class UnknownEvent extends EventSourcingException implements Unrecoverable {}
