<?php

declare(strict_types=1);

namespace Weft\Internal\Codec;

/**
 * The type of a property cannot be encoded; the message completes "property $x …".
 *
 * @internal
 */
final class UnsupportedTypeException extends \Exception {}
