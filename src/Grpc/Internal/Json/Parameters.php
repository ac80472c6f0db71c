<?php

declare(strict_types=1);

namespace Weft\Grpc\Internal\Json;

use Weft\Grpc\Status;
use Weft\Grpc\StatusException;
use Weft\Protobuf\Descriptor\FieldDescriptorProto;
use Weft\Protobuf\Descriptor\FieldDescriptorProto\Label;
use Weft\Protobuf\Descriptor\FieldDescriptorProto\Type;

/**
 * The fields of a request message that come from path and query.
 *
 * @internal
 */
final class Parameters
{
    /** Message types with a single JSON value, which may be given as a string or a bool. */
    private const VALUES = [
        '.google.protobuf.Timestamp', '.google.protobuf.Duration', '.google.protobuf.FieldMask', '.google.protobuf.DoubleValue',
        '.google.protobuf.FloatValue', '.google.protobuf.Int64Value', '.google.protobuf.UInt64Value', '.google.protobuf.Int32Value',
        '.google.protobuf.UInt32Value', '.google.protobuf.StringValue', '.google.protobuf.BytesValue', self::BOOL_VALUE,
    ];
    private const BOOL_VALUE = '.google.protobuf.BoolValue';

    /** @var array<string, mixed> as JSON has the message */
    private array $tree = [];
    /** @var array<string, non-empty-list<FieldDescriptorProto>> by path of names in JSON */
    private array $paths = [];

    /** @param string $message full name */
    public function __construct(private readonly Messages $messages, private readonly string $message)
    {
    }

    /**
     * A variable of the path. It replaces the same field of the query.
     *
     * @throws StatusException the message has no such field, or the value does not fit it
     */
    public function addVariable(string $path, string $value): void
    {
        $this->add($path, $value, true);
    }

    private function add(string $path, string $value, bool $isReplacing): void
    {
        $fields = $this->messages->path($this->message, $path)
            ?? throw new StatusException(Status::InvalidArgument, "$this->message has no field \"$path\"");
        if (\preg_match('//u', $value) !== 1) {
            throw new StatusException(Status::InvalidArgument, "\"$path\" is not UTF-8");
        }
        $key = \implode('.', \array_map(static fn(FieldDescriptorProto $field): string => (string) $field->jsonName, $fields));
        if (isset($this->paths[$key]) && !$isReplacing && \end($fields)->label !== Label::REPEATED) {
            throw new StatusException(Status::InvalidArgument, "\"$path\" is one value and there are several");
        }
        $this->paths[$key] = $fields;
        $tree = &$this->tree;
        foreach (\array_slice($fields, 0, -1) as $field) {
            if (\in_array($field->typeName, self::VALUES, true)) {
                throw new StatusException(Status::InvalidArgument, "\"$path\" is a field of " . \ltrim((string) $field->typeName, '.') . ', which is one value in JSON');
            }
            $tree[(string) $field->jsonName] ??= [];
            $tree = &$tree[(string) $field->jsonName];
        }
        $last = \end($fields);
        $value = self::value($last, $path, $value);
        if ($last->label === Label::REPEATED) {
            $tree[(string) $last->jsonName][] = $value;
        } else {
            $tree[(string) $last->jsonName] = $value;
        }
    }

    /**
     * @param string $query `a=1&b.c=2`, without the question mark
     *
     * @throws StatusException
     */
    public function addQuery(string $query): void
    {
        foreach ($query === '' ? [] : \explode('&', $query) as $pair) {
            $parts = \explode('=', $pair, 2);
            if ($parts[0] !== '') {
                $this->add(\urldecode($parts[0]), \urldecode($parts[1] ?? ''), false);
            }
        }
    }

    /** @return list<non-empty-list<FieldDescriptorProto>> the fields along each path, in the order they were added */
    public function paths(): array
    {
        return \array_values($this->paths);
    }

    public function json(): string
    {
        return \json_encode((object) $this->tree, \JSON_THROW_ON_ERROR);
    }

    private static function value(FieldDescriptorProto $field, string $path, string $value): string|bool|int
    {
        return match (true) {
            $field->type === Type::BOOL, $field->typeName === self::BOOL_VALUE => match ($value) {
                'true', '1' => true,
                'false', '0' => false,
                default => throw new StatusException(Status::InvalidArgument, "\"$path\" must be true or false, got \"$value\""),
            },
            $field->type === Type::ENUM && \preg_match('/^-?\d{1,10}$/', $value) === 1 => (int) $value,
            $field->type === Type::GROUP,
            $field->type === Type::MESSAGE && !\in_array($field->typeName, self::VALUES, true) => throw new StatusException(Status::InvalidArgument, "\"$path\" is a message: name one of its fields"),
            default => $value,
        };
    }
}
