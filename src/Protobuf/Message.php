<?php

declare(strict_types=1);

namespace Weft\Protobuf;

/**
 * A class generated from a message of a .proto file: its public typed properties are the fields.
 *
 * `Codec` turns it into bytes and back. Do not implement it by hand: the extension compares the class with the descriptor
 * when it first meets it.
 */
interface Message
{
    /** The full name of the message in its .proto file, such as `api.User`. */
    public static function typeName(): string;

    /** @return class-string<File> the file that describes it */
    public static function file(): string;
}
