<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Codec;

use Weft\Bus\InvalidMessageClass;
use Weft\Bus\MessageType;

/**
 * All message classes this process knows, by class and by the name they travel under.
 *
 * @internal
 */
final class Codec
{
    private readonly Compiler $compiler;

    /** @var array<class-string, MessageClass> */
    private array $byClass = [];

    /** @var array<string, MessageClass> */
    private array $byType = [];

    public function __construct()
    {
        $this->compiler = new Compiler();
    }

    /**
     * @param class-string $class
     * @throws InvalidMessageClass
     */
    public function of(string $class): MessageClass
    {
        return $this->byClass[$class] ?? $this->learn($class);
    }

    /** Only classes that were named in the program are found: nothing from the wire is ever loaded. */
    public function ofType(string $type): ?MessageClass
    {
        return $this->byType[$type] ?? null;
    }

    private function learn(string $class): MessageClass
    {
        $shape = $this->compiler->shape($class);
        $reflection = new \ReflectionClass($class);
        $attribute = $reflection->getAttributes(MessageType::class)[0] ?? null;
        $type = $attribute?->newInstance() ?? new MessageType($class);
        $known = $this->byType[$type->name] ?? null;
        if ($known !== null) {
            throw InvalidMessageClass::because($class, "its type name \"{$type->name}\" is taken by {$known->class}");
        }

        return $this->byClass[$class] = $this->byType[$type->name] = new MessageClass($class, $type->name, $type->version, $shape, Policy::of($reflection, $type->name));
    }
}
