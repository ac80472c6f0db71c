<?php

declare(strict_types=1);

namespace Weft\Bus;

/** Another message with the same id and another body was handled before; ids are to be unique. */
final class DuplicateMessageId extends BusException {}
