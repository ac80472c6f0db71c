<?php

declare(strict_types=1);

namespace Weft\Protobuf;

use Weft\Protobuf\Descriptor\FileDescriptorSet;

/** Files with everything they import, as reflection and other tools want them. */
final class FileSet
{
    /**
     * @param class-string<File> ...$files
     *
     * @return array<string, string> from the name of each file to its serialized `FileDescriptorProto`; imports come before the files
     *     that import them. An import whose class was not generated is left out: no message needs it, or it could not have been decoded.
     */
    public static function descriptors(string ...$files): array
    {
        $descriptors = [];
        foreach ($files as $file) {
            if (\class_exists($file) && !isset($descriptors[$file::name()])) {
                $descriptors += self::descriptors(...$file::dependencies());
                $descriptors[$file::name()] = $file::descriptor();
            }
        }

        return $descriptors;
    }

    /**
     * @param class-string<File> ...$files
     *
     * @return string a serialized `google.protobuf.FileDescriptorSet`
     */
    public static function encode(string ...$files): string
    {
        $set = new FileDescriptorSet;
        foreach (self::descriptors(...$files) as $descriptor) {
            $set->file[] = Codec::decode(Descriptor\FileDescriptorProto::class, $descriptor);
        }

        return Codec::encode($set);
    }
}
