<?php

declare(strict_types=1);

namespace Weft\EventSourcing;

use Weft\Bus\Unrecoverable;

/** The aggregate has no events. */
final class AggregateNotFound extends EventSourcingException implements Unrecoverable {}
