<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Codec;

/**
 * The message whose properties are being encoded or decoded. Encrypted values are bound to it, also in nested objects.
 *
 * @internal
 */
final class EncryptionContext
{
    /** Its type name. */
    public string $type = '';

    /** Empty without an id. */
    public string $id = '';
}
