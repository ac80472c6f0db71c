<?php

declare(strict_types=1);

namespace Weft\Grpc\Internal\Json;

use Weft\Protobuf\Codec;
use Weft\Protobuf\Descriptor\DescriptorProto;
use Weft\Protobuf\Descriptor\EnumDescriptorProto;
use Weft\Protobuf\Descriptor\FieldDescriptorProto;
use Weft\Protobuf\Descriptor\FieldDescriptorProto\Label;
use Weft\Protobuf\Descriptor\FieldDescriptorProto\Type;
use Weft\Protobuf\Descriptor\FileDescriptorProto;
use Weft\Protobuf\File;
use Weft\Protobuf\FileSet;

/**
 * The fields of the messages in some files and their imports.
 *
 * @internal
 */
final class Messages
{
    /** @var array<string, array<string, FieldDescriptorProto>> by full name of the message, then by name of the field and its name in JSON */
    private array $fields = [];
    /** @var array<string, array<int, array{string, list<FieldDescriptorProto>}>> name and members of each oneof, by full name of the message */
    private array $oneofs = [];
    /** @var array<string, true> the messages that are entries of a map, by full name */
    private array $mapEntries = [];
    /** @var array<string, string> the name of the default of an enum, by its full name */
    private array $defaults = [];

    /** @param list<class-string<File>> $files */
    public function __construct(array $files)
    {
        foreach (FileSet::descriptors(...$files) as $descriptor) {
            $file = Codec::decode(FileDescriptorProto::class, $descriptor);
            $prefix = ($file->package ?? '') === '' ? '' : "$file->package.";
            $this->addEnums($prefix, $file->enumType);
            foreach ($file->messageType as $message) {
                $this->add($prefix, $message);
            }
        }
    }

    /**
     * The fields along a path such as `user.address.city`; all but the last are messages.
     *
     * @param string $message full name
     *
     * @return non-empty-list<FieldDescriptorProto>|null null if the path does not exist
     */
    public function path(string $message, string $path): ?array
    {
        $fields = [];
        $last = null;
        foreach (\explode('.', $path) as $name) {
            if ($last !== null) {
                if ($last->type !== Type::MESSAGE || $last->label === Label::REPEATED) {
                    return null;
                }
                $message = \ltrim((string) $last->typeName, '.');
            }
            $last = $this->fields[$message][$name] ?? null;
            if ($last === null) {
                return null;
            }
            $fields[] = $last;
        }

        return $fields;
    }

    /**
     * The other members of the field's oneof.
     *
     * @param string $message full name
     *
     * @return list<FieldDescriptorProto>
     */
    public function others(string $message, FieldDescriptorProto $field): array
    {
        $members = $field->oneofIndex === null ? [] : $this->oneofs[$message][$field->oneofIndex][1];

        return \array_values(\array_filter($members, static fn(FieldDescriptorProto $member): bool => $member !== $field));
    }

    /** @param string $message full name */
    public function oneof(string $message, FieldDescriptorProto $field): string
    {
        return $this->oneofs[$message][(int) $field->oneofIndex][0];
    }

    /** The JSON of a field that has no presence and is not set. */
    public function unset(FieldDescriptorProto $field): string
    {
        $type = \ltrim((string) $field->typeName, '.');

        return match (true) {
            $field->label === Label::REPEATED => isset($this->mapEntries[$type]) ? '{}' : '[]',
            $field->type === Type::BOOL => 'false',
            $field->type === Type::ENUM => "\"{$this->defaults[$type]}\"",
            \in_array($field->type, [Type::STRING, Type::BYTES], true) => '""',
            \in_array($field->type, [Type::INT64, Type::UINT64, Type::SINT64, Type::FIXED64, Type::SFIXED64], true) => '"0"',
            default => '0',
        };
    }

    /** @param list<EnumDescriptorProto> $enums */
    private function addEnums(string $prefix, array $enums): void
    {
        foreach ($enums as $enum) {
            $this->defaults[$prefix . (string) $enum->name] = (string) ($enum->value[0]->name ?? '');
        }
    }

    private function add(string $prefix, DescriptorProto $message): void
    {
        $name = $prefix . (string) $message->name;
        $this->fields[$name] = [];
        foreach ($message->field as $field) {
            $this->fields[$name][(string) $field->jsonName] = $field;
        }
        // If the name of a field equals the JSON name of another, the name takes precedence.
        foreach ($message->field as $field) {
            $this->fields[$name][(string) $field->name] = $field;
        }
        foreach ($message->oneofDecl as $index => $oneof) {
            $members = \array_filter($message->field, static fn(FieldDescriptorProto $field): bool => $field->oneofIndex === $index);
            $this->oneofs[$name][$index] = [(string) $oneof->name, \array_values($members)];
        }
        if ($message->options?->mapEntry === true) {
            $this->mapEntries[$name] = true;
        }
        $this->addEnums("$name.", $message->enumType);
        foreach ($message->nestedType as $nested) {
            $this->add("$name.", $nested);
        }
    }
}
