<?php

declare(strict_types=1);

namespace Weft\Protobuf;

/** A class generated from a .proto file as a whole: the descriptor that messages are encoded and decoded by. */
interface File
{
    /** As other files import it, such as `api/users.proto`. */
    public static function name(): string;

    /** @return list<class-string<File>> the files it imports, in the order of its import statements */
    public static function dependencies(): array;

    /** @return string a serialized `google.protobuf.FileDescriptorProto`, without source positions */
    public static function descriptor(): string;

    /** @return array<string, class-string> from the full names of its messages and enums to their classes */
    public static function types(): array;
}
