<?php

declare(strict_types=1);

namespace Weft\Bus;

/** A message with the same id and a different body was handled before. Message ids must be unique. */
final class DuplicateMessageIdException extends BusException {}
