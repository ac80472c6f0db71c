<?php

declare(strict_types=1);

namespace Weft\Protobuf\Internal\Generator;

use Weft\Protobuf\Descriptor\DescriptorProto;
use Weft\Protobuf\Internal\Names;

/**
 * A message as a final class with a property per field.
 *
 * @internal
 */
final class MessageWriter
{
    /** Messages of google/protobuf whose classes can do more. */
    private const TRAITS = [
        'google.protobuf.Any' => 'Weft\Protobuf\Internal\AnyMethods',
        'google.protobuf.Duration' => 'Weft\Protobuf\Internal\DurationMethods',
    ];


    public static function body(Catalogue $catalogue, Type $type, DescriptorProto $message, Code $code): string
    {
        $properties = self::properties($catalogue, $type, $message, $code);
        $interface = $code->name('Weft\Protobuf\Message');
        $trait = isset(self::TRAITS[$type->name]) ? "    use \\" . self::TRAITS[$type->name] . ";\n\n" : '';
        $deprecated = $message->options?->deprecated === true ? ['', '@deprecated'] : [];

        return Code::doc([$type->file->comment($type->path) ?: "The message {$type->name}.", ...$deprecated])
            . "final class {$code->shortName()} implements {$interface}\n{\n{$trait}"
            . "    /** Fields that are not known here, as they came over the wire. */\n"
            . "    private string \$unknownFields = '';\n\n"
            . self::constructor($properties)
            . self::oneofs($type, $message, $properties)
            . self::description($type, $code)
            . "}\n";
    }

    /** @return list<Property> */
    private static function properties(Catalogue $catalogue, Type $type, DescriptorProto $message, Code $code): array
    {
        $properties = [];
        foreach ($message->field as $index => $field) {
            $property = Property::of($catalogue, $type, $field, $index, $code);
            if (isset($properties[$property->name])) {
                throw new GenerationException("{$type->file->name}: {$type->name} has two fields that would both become \${$property->name}; {$field->name} is one of them");
            }
            $properties[$property->name] = $property;
        }

        return \array_values($properties);
    }

    /** @param list<Property> $properties */
    private static function constructor(array $properties): string
    {
        if ($properties === []) {
            return '';
        }
        $doc = $parameters = [];
        foreach ($properties as $property) {
            if ($property->comment !== '' || $property->documented !== $property->type) {
                $doc[] = \rtrim("@param {$property->documented} \${$property->name} " . \str_replace("\n", "\n    ", $property->comment));
            }
            $parameters[] = "        public {$property->type} \${$property->name} = {$property->default},\n";
        }

        return Code::doc($doc, '    ') . "    public function __construct(\n" . \implode('', $parameters) . "    ) {\n    }\n\n";
    }

    /** @param list<Property> $properties */
    private static function oneofs(Type $type, DescriptorProto $message, array $properties): string
    {
        $text = '';
        $methods = [];
        foreach ($message->oneofDecl as $index => $oneof) {
            $members = \array_filter($properties, static fn(Property $property): bool => $property->oneof === $index);
            if ($members === []) {
                continue;
            }
            $method = \lcfirst(Names::property($oneof->name ?? '')) . 'Case';
            $key = \strtolower($method);
            if (isset($methods[$key])) {
                throw new GenerationException("{$type->file->name}: the oneofs {$oneof->name} and {$methods[$key]} of {$type->name} would both become the method {$method}()");
            }
            $methods[$key] = $oneof->name;
            $names = \array_map(static fn(Property $property): string => Code::string($property->name), $members);
            $arms = \array_map(static fn(Property $property): string => "            \$this->{$property->name} !== null => '{$property->name}',\n", $members);
            $comment = $type->file->comment([...$type->path, 8, $index]);
            $text .= Code::doc([...($comment === '' ? [] : [$comment, '']), '@return ' . \implode('|', $names) . '|null the one property that is set'], '    ')
                . "    public function {$method}(): ?string\n    {\n"
                . "        return match (true) {\n" . \implode('', $arms) . "            default => null,\n        };\n    }\n\n";
        }

        return $text;
    }

    private static function description(Type $type, Code $code): string
    {
        $name = Code::string($type->name);
        $file = $code->name($type->file->fileClass());

        return <<<PHP
                public static function typeName(): string
                {
                    return {$name};
                }

                public static function file(): string
                {
                    return {$file}::class;
                }

            PHP;
    }
}
