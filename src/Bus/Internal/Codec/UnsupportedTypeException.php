<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Codec;

/**
 * A property's type cannot cross; the message completes "property $x …".
 *
 * @internal
 */
final class UnsupportedTypeException extends \Exception {}
