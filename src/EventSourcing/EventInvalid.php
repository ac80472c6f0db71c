<?php

declare(strict_types=1);

namespace Weft\EventSourcing;

use Weft\Bus\Unrecoverable;

/** A recorded event or snapshot does not fit its class any more: an upcaster is missing. */
final class EventInvalid extends EventSourcingException implements Unrecoverable {}
