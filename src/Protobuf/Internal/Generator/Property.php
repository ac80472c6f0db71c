<?php

declare(strict_types=1);

namespace Weft\Protobuf\Internal\Generator;

use Weft\Protobuf\Descriptor\DescriptorProto;
use Weft\Protobuf\Descriptor\EnumDescriptorProto;
use Weft\Protobuf\Descriptor\FieldDescriptorProto;
use Weft\Protobuf\Descriptor\FieldDescriptorProto\Label;
use Weft\Protobuf\Descriptor\FieldDescriptorProto\Type as Kind;
use Weft\Protobuf\Internal\Names;

/**
 * A field as a property: its type for PHP and for a reader, and its default.
 *
 * @internal
 */
final class Property
{
    /** Messages that PHP has a type for. */
    private const NATIVE_TYPES = [
        'google.protobuf.Timestamp' => '\DateTimeImmutable',
        'google.protobuf.Struct' => 'array',
        'google.protobuf.ListValue' => 'array',
        'google.protobuf.Value' => 'mixed',
        'google.protobuf.DoubleValue' => 'float',
        'google.protobuf.FloatValue' => 'float',
        'google.protobuf.Int64Value' => 'int',
        'google.protobuf.UInt64Value' => 'int',
        'google.protobuf.Int32Value' => 'int',
        'google.protobuf.UInt32Value' => 'int',
        'google.protobuf.BoolValue' => 'bool',
        'google.protobuf.StringValue' => 'string',
        'google.protobuf.BytesValue' => 'string',
    ];

    private const DOCUMENTED = [
        'google.protobuf.Struct' => 'array<string, mixed>',
        'google.protobuf.ListValue' => 'list<mixed>',
    ];

    private function __construct(
        public readonly string $name,
        public readonly string $type,
        public readonly string $documented,
        public readonly string $default,
        public readonly ?int $oneof,
        public readonly string $comment,
    ) {
    }

    /** @param int $index of the field in its message */
    public static function of(Catalogue $catalogue, Type $message, FieldDescriptorProto $field, int $index, Code $code): self
    {
        $symbol = "{$message->file->name}: {$message->name}.{$field->name}";
        $features = $message->features->with($field->options?->features);
        $value = self::value($catalogue, $field, $symbol, $code);
        $entry = self::entry($catalogue, $field, $symbol);
        [$type, $documented, $default] = match (true) {
            $entry !== null => ['array', self::map($catalogue, $entry, $symbol, $code), '[]'],
            $field->label === Label::REPEATED => ['array', "list<{$value[1]}>", '[]'],
            self::hasPresence($catalogue, $field, $features) => [self::nullable($value[0]), self::nullable($value[1]), 'null'],
            default => [$value[0], $value[1], self::zero($catalogue, $field, $symbol, $code)],
        };

        return new self(
            Names::property($field->name ?? ''),
            $type,
            $documented,
            $default,
            $field->proto3Optional === true ? null : $field->oneofIndex,
            self::comment($message, $field, $index),
        );
    }

    /** @return array{string, string} the type of one value, and as documentation says it */
    private static function value(Catalogue $catalogue, FieldDescriptorProto $field, string $symbol, Code $code): array
    {
        $scalar = match ($field->type) {
            Kind::DOUBLE, Kind::FLOAT => 'float',
            Kind::BOOL => 'bool',
            Kind::STRING, Kind::BYTES => 'string',
            Kind::MESSAGE, Kind::GROUP, Kind::ENUM => null,
            default => 'int',
        };
        if ($scalar !== null) {
            return [$scalar, $scalar];
        }
        $type = $catalogue->type($field->typeName, $symbol);
        $natural = $field->type === Kind::MESSAGE ? self::NATIVE_TYPES[$type->name] ?? null : null;
        if ($natural !== null) {
            return [$natural, self::DOCUMENTED[$type->name] ?? $natural];
        }
        $class = $code->name($type->class);
        if ($field->type === Kind::ENUM && $type->features->openEnums) {
            $class .= '|int';
        }

        return [$class, $class];
    }

    private static function entry(Catalogue $catalogue, FieldDescriptorProto $field, string $symbol): ?DescriptorProto
    {
        if ($field->type !== Kind::MESSAGE || $field->label !== Label::REPEATED) {
            return null;
        }
        $type = $catalogue->type($field->typeName, $symbol);

        return $type->isMapEntry() && $type->descriptor instanceof DescriptorProto ? $type->descriptor : null;
    }

    private static function map(Catalogue $catalogue, DescriptorProto $entry, string $symbol, Code $code): string
    {
        [$key, $value] = $entry->field;
        $key = self::value($catalogue, $key, $symbol, $code)[1];
        $key = ['bool' => 'int', 'string' => 'string'][$key] ?? 'int';

        return "array<{$key}, " . self::value($catalogue, $value, $symbol, $code)[1] . '>';
    }

    private static function hasPresence(Catalogue $catalogue, FieldDescriptorProto $field, Features $features): bool
    {
        return !$features->implicitPresence
            || $field->oneofIndex !== null
            || $field->proto3Optional === true
            || \in_array($field->type, [Kind::MESSAGE, Kind::GROUP], true);
    }

    private static function nullable(string $type): string
    {
        return match (true) {
            $type === 'mixed' => 'mixed',
            \str_contains($type, '|') => "{$type}|null",
            \str_contains($type, '<') => "{$type}|null",
            default => "?{$type}",
        };
    }

    private static function zero(Catalogue $catalogue, FieldDescriptorProto $field, string $symbol, Code $code): string
    {
        if ($field->type !== Kind::ENUM) {
            return match ($field->type) {
                Kind::DOUBLE, Kind::FLOAT => '0.0',
                Kind::BOOL => 'false',
                Kind::STRING, Kind::BYTES => "''",
                default => '0',
            };
        }
        $type = $catalogue->type($field->typeName, $symbol);
        \assert($type->descriptor instanceof EnumDescriptorProto);
        $cases = EnumWriter::cases($type->descriptor);

        return $code->name($type->class) . '::' . (string) \reset($cases);
    }

    private static function comment(Type $message, FieldDescriptorProto $field, int $index): string
    {
        $comment = $message->file->comment([...$message->path, 2, $index]);
        if ($field->defaultValue !== null && $field->type !== Kind::BYTES) {
            $comment = \trim("{$comment}\nAbsent means " . \str_replace('*/', '* /', \addcslashes($field->defaultValue, "\0..\37")) . '.', "\n");
        }
        if ($field->options?->deprecated === true) {
            $comment = \trim("Deprecated. {$comment}");
        }

        return $comment;
    }
}
