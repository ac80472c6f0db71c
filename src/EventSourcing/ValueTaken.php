<?php

declare(strict_types=1);

namespace Weft\EventSourcing;

/** The value of a unique index belongs to somebody else. The transaction can still be used. */
final class ValueTaken extends EventSourcingException {}
