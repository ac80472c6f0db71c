<?php

declare(strict_types=1);

namespace Weft\Bus;

/** A method marked as a handler has an invalid signature. */
final class InvalidHandlerError extends \Error implements \Weft\Exception {}
