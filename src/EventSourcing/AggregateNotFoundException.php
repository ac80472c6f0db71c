<?php

declare(strict_types=1);

namespace Weft\EventSourcing;

use Weft\Bus\Unrecoverable;

/** The aggregate has no events. */
final class AggregateNotFoundException extends EventSourcingException implements Unrecoverable {}
