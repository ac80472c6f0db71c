<?php

declare(strict_types=1);

namespace Weft\Bus;

/** A method marked as a handler cannot be one. */
final class InvalidHandler extends \Error implements \Weft\Exception {}
