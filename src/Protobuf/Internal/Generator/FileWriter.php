<?php

declare(strict_types=1);

namespace Weft\Protobuf\Internal\Generator;

use Weft\Protobuf\Codec;

/**
 * A .proto file as the class that holds its descriptor.
 *
 * @internal
 */
final class FileWriter
{
    public static function body(Catalogue $catalogue, SourceFile $file, Code $code): string
    {
        $descriptor = clone $file->descriptor;
        $descriptor->sourceCodeInfo = null;
        $bytes = \chunk_split(\base64_encode(Codec::encode($descriptor)), 112, "\n            ");
        $bytes = \rtrim($bytes);
        $name = Code::string($file->name);
        $imports = '';
        foreach ($file->descriptor->dependency as $import) {
            $imports .= "            {$code->name($catalogue->file($import)->fileClass())}::class,\n";
        }
        $types = '';
        foreach ($catalogue->typesOf($file) as $type) {
            $types .= '            ' . Code::string($type->name) . " => {$code->name($type->class)}::class,\n";
        }
        [$imports, $types] = [self::list($imports), self::list($types)];

        return <<<PHP
            /** The descriptor of {$file->name}. */
            final class {$code->shortName()} implements {$code->name('Weft\Protobuf\File')}
            {
                public static function name(): string
                {
                    return {$name};
                }

                public static function dependencies(): array
                {
                    return {$imports};
                }

                public static function descriptor(): string
                {
                    return (string) \base64_decode(<<<'BASE64'
                        {$bytes}
                        BASE64);
                }

                public static function types(): array
                {
                    return {$types};
                }
            }

            PHP;
    }

    private static function list(string $lines): string
    {
        return $lines === '' ? '[]' : "[\n{$lines}        ]";
    }
}
