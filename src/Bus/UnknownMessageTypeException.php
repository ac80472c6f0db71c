<?php

declare(strict_types=1);

namespace Weft\Bus;

/** A message has a type for which no handler and no message class is registered. */
final class UnknownMessageTypeException extends BusException implements PublicFailure {}
