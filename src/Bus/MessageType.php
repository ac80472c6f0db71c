<?php

declare(strict_types=1);

namespace Weft\Bus;

use Weft\Bus\Internal\Identifier;

/**
 * Sets the type name and schema version of a message class.
 *
 * The defaults are the class name and version 1. A name of its own keeps messages readable after the class has moved, and lets
 * programs in other languages exchange them. `#[MessageType(OrderPlaced::class, version: 2)]` keeps the class name.
 */
#[\Attribute(\Attribute::TARGET_CLASS)]
final class MessageType
{
    /**
     * @param string $name    1 to 200 bytes of UTF-8 without NUL; brokers route by it
     * @param int    $version version of the schema, at least 1, incremented with each change of the schema
     */
    public function __construct(
        public readonly string $name,
        public readonly int $version = 1,
    ) {
        Identifier::check('The name of a message type', $name, 200);
        if ($version < 1) {
            throw new \ValueError("The version of message type \"{$name}\" must be at least 1, got {$version}");
        }
    }
}
