<?php

declare(strict_types=1);

namespace Weft\EventSourcing\Internal;

use Weft\Bus\Internal\Codec\MessageClass;
use Weft\Bus\Internal\Codec\MessageCompiler;
use Weft\Bus\Internal\Identifier;
use Weft\EventSourcing\AggregateRoot;
use Weft\EventSourcing\Applies;
use Weft\EventSourcing\InvalidAggregateError;
use Weft\EventSourcing\RecordsEvents;
use Weft\Internal\AttributeArea;
use Weft\Internal\AttributeCheck;

/**
 * The options of an aggregate class, and the methods that apply its events.
 *
 * @internal
 */
final class AggregateClass
{
    /** @var array<class-string, self> */
    private static array $known = [];

    public readonly AggregateRoot $options;

    /** The codec of its properties for snapshots; null without snapshots. */
    public readonly ?MessageClass $state;

    /** @var array<class-string, \Closure(object, object): void> by class of the event */
    private readonly array $apply;

    private readonly \Closure $id;

    /** @param class-string $class */
    private function __construct(public readonly string $class)
    {
        $reflection = \class_exists($class) ? new \ReflectionClass($class) : throw new InvalidAggregateError("Class {$class} does not exist");
        if (($problem = AttributeCheck::on($reflection, AttributeArea::EventSourcing)) !== null) {
            throw new InvalidAggregateError("Class {$class} {$problem}");
        }
        $attribute = $reflection->getAttributes(AggregateRoot::class)[0] ?? null;
        if ($attribute === null || !\in_array(RecordsEvents::class, self::traits($reflection), true)) {
            throw new InvalidAggregateError("Class {$class} is not an aggregate: it needs the attribute #[AggregateRoot] and the trait RecordsEvents");
        }
        if ($reflection->getMethod('__clone')->getFileName() !== (new \ReflectionMethod(RecordsEvents::class, '__clone'))->getFileName()) {
            throw new InvalidAggregateError("Aggregate {$class} has its own __clone(), which replaces that of RecordsEvents: remove it, because only the original can be saved");
        }
        $this->options = $attribute->newInstance();
        if (!$reflection->hasProperty($this->options->id)) {
            throw new InvalidAggregateError("Aggregate {$class} has no property \${$this->options->id}, which must hold its id");
        }
        $id = $this->options->id;
        $this->id = \Closure::bind(static fn(object $aggregate): mixed => $aggregate->$id ?? null, null, $reflection->getProperty($id)->class);
        $this->apply = self::appliers($reflection);
        // An event that has not come yet may be the one that initializes a property.
        $this->state = $this->options->snapshotEvery === null ? null : new MessageClass(
            $class,
            $this->options->name,
            $this->options->version,
            (new MessageCompiler(keepsUninitialized: true))->shape($class, 'an aggregate with snapshots'),
        );
    }

    /** @param class-string $class */
    public static function of(string $class): self
    {
        return self::$known[$class] ??= new self($class);
    }

    /** @return list<class-string> of events that it applies */
    public function events(): array
    {
        return \array_keys($this->apply);
    }

    public function apply(object $aggregate, object $event): void
    {
        $apply = $this->apply[$event::class] ?? null;
        $apply === null || $apply($aggregate, $event);
    }

    /** @return object without properties, as events will fill it */
    public function blank(): object
    {
        return (new \ReflectionClass($this->class))->newInstanceWithoutConstructor();
    }

    public function streamOf(object $aggregate): string
    {
        $id = ($this->id)($aggregate);
        if (!\is_string($id) && !\is_int($id) && !$id instanceof \Stringable) {
            throw new \Error("Aggregate {$this->class} has no id in \${$this->options->id}: its first event must set it");
        }

        return $this->stream((string) $id);
    }

    public function stream(string $id): string
    {
        Identifier::check("The id of an aggregate {$this->class}", $id, 139);

        return "{$this->options->name}:{$id}";
    }

    /**
     * @param \ReflectionClass<object> $reflection
     * @return array<class-string, \Closure(object, object): void>
     */
    private static function appliers(\ReflectionClass $reflection): array
    {
        /** @var array<class-string, \Closure(object, object): void> $appliers */
        $appliers = [];
        foreach ($reflection->getMethods() as $method) {
            if (($problem = AttributeCheck::on($method, AttributeArea::EventSourcing)) !== null) {
                throw new InvalidAggregateError("Method {$method->class}::{$method->name}() {$problem}");
            }
            if ($method->getAttributes(Applies::class) === []) {
                continue;
            }
            $type = $method->getNumberOfParameters() === 1 ? $method->getParameters()[0]->getType() : null;
            if (!$type instanceof \ReflectionNamedType || $type->isBuiltin() || $method->isStatic()) {
                throw new InvalidAggregateError("Method {$method->class}::{$method->name}() cannot apply an event: it must not be static and must have one parameter of an event class");
            }
            $event = $type->getName();
            if (isset($appliers[$event])) {
                throw new InvalidAggregateError("Two methods of {$reflection->name} apply {$event}; {$method->name}() is one of them");
            }
            $name = $method->name;
            /** @var \Closure(object, object): void $applier */
            $applier = \Closure::bind(static fn(object $aggregate, object $event) => $aggregate->$name($event), null, $method->class);
            $appliers[$event] = $applier;
        }

        return $appliers;
    }

    /**
     * @param \ReflectionClass<object> $reflection
     * @return list<string> also those of its parents
     */
    private static function traits(\ReflectionClass $reflection): array
    {
        $traits = [];
        for ($class = $reflection; $class !== false; $class = $class->getParentClass()) {
            \array_push($traits, ...$class->getTraitNames());
        }

        return $traits;
    }
}
