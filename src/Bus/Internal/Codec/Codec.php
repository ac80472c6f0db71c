<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Codec;

use Google\Protobuf\Internal\Message as GoogleMessage;
use Weft\Bus\InvalidMessageClassError;
use Weft\Bus\MessageType;
use Weft\Bus\Serializer\Protobuf;
use Weft\Protobuf\Message as GeneratedMessage;

/**
 * The message classes of this process, by class and by type name.
 *
 * @internal
 */
final class Codec
{
    /** @var array<class-string, MessageClass> */
    private array $byClass = [];

    /** @var array<string, MessageClass> */
    private array $byType = [];

    public function __construct(
        private readonly MessageCompiler $compiler = new MessageCompiler(),
        private readonly MessageRules $rules = new MessageRules(),
    ) {}

    /**
     * @param class-string $class
     * @throws InvalidMessageClassError
     */
    public function of(string $class): MessageClass
    {
        return $this->byClass[$class] ?? $this->learn($class);
    }

    /** Only registered classes are found: a message never loads a class. */
    public function ofType(string $type): ?MessageClass
    {
        return $this->byType[$type] ?? null;
    }

    /** As {@see ofType()}. */
    public function ofClass(string $class): ?MessageClass
    {
        return $this->byClass[$class] ?? null;
    }

    /** How many classes are known. */
    public function count(): int
    {
        return \count($this->byClass);
    }

    /** @return list<MessageClass> */
    public function known(): array
    {
        return \array_values($this->byClass);
    }

    /** @param class-string $class */
    private function learn(string $class): MessageClass
    {
        $generated = \is_subclass_of($class, GeneratedMessage::class) || \is_subclass_of($class, GoogleMessage::class);
        $shape = $generated ? null : $this->compiler->shape($class);
        $reflection = new \ReflectionClass($class);
        $attribute = $reflection->getAttributes(MessageType::class)[0] ?? null;
        $type = $attribute?->newInstance() ?? new MessageType(\is_subclass_of($class, GeneratedMessage::class) ? $class::typeName() : $class);
        $known = $this->byType[$type->name] ?? null;
        if ($known !== null) {
            throw InvalidMessageClassError::because($class, "its type name \"{$type->name}\" is used by {$known->class}");
        }

        return $this->byClass[$class] = $this->byType[$type->name] = new MessageClass(
            $class,
            $type->name,
            $type->version,
            $shape,
            $this->compiler->binding,
            DeliveryPolicy::of($reflection, $type->name),
            $this->rules->serializer($reflection, $type->name) ?? ($generated ? new Protobuf() : null),
            $this->rules->route($reflection, $type->name),
        );
    }
}
