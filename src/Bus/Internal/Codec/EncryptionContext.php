<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Codec;

/**
 * The message whose properties are being coded: what is encrypted is bound to it, also within the objects it holds.
 *
 * @internal
 */
final class EncryptionContext
{
    /** Name of the type, as it travels. */
    public string $type = '';

    /** Empty where there is none. */
    public string $id = '';
}
