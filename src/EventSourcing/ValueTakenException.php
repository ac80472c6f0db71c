<?php

declare(strict_types=1);

namespace Weft\EventSourcing;

/** Another owner has the value of the unique index. The transaction can still be used. */
final class ValueTakenException extends EventSourcingException {}
