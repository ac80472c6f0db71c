<?php

declare(strict_types=1);

namespace Weft\EventSourcing;

use Weft\Bus\Unrecoverable;

/** No event of the aggregate was ever recorded. */
final class AggregateNotFound extends EventSourcingException implements Unrecoverable {}
