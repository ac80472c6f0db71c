<?php

declare(strict_types=1);

namespace Weft\Protobuf\Internal\Generator;

use Weft\Protobuf\Descriptor\EnumDescriptorProto;
use Weft\Protobuf\Internal\Names;

/**
 * An enum as a PHP enum backed by int; an alias of a value is a constant.
 *
 * @internal
 */
final class EnumWriter
{
    public static function body(Type $type, EnumDescriptorProto $enum, Code $code): string
    {
        $deprecated = $enum->options?->deprecated === true ? ['', '@deprecated'] : [];
        $text = Code::doc([$type->file->comment($type->path) ?: "The enum {$type->name}.", ...$deprecated])
            . "enum {$code->shortName()}: int\n{\n";
        $cases = self::cases($enum);
        $numbers = [];
        foreach ($enum->value as $index => $value) {
            $case = $cases[$value->name ?? ''];
            $number = $value->number ?? 0;
            $deprecated = $value->options?->deprecated === true ? ['@deprecated'] : [];
            $text .= Code::doc([$type->file->comment([...$type->path, 2, $index]), ...$deprecated], '    ');
            $text .= isset($numbers[$number])
                ? "    public const {$case} = self::{$numbers[$number]};\n"
                : "    case {$case} = {$number};\n";
            $numbers[$number] ??= $case;
        }

        return "{$text}}\n";
    }

    /** @return array<string, string> from the names of values to those of cases */
    public static function cases(EnumDescriptorProto $enum): array
    {
        return Names::cases($enum->name ?? '', \array_map(static fn($value): string => $value->name ?? '', $enum->value));
    }
}
