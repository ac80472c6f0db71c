<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Handlers;

use Psr\Container\ContainerInterface;
use Psr\Log\LoggerInterface;
use Weft\Bus\Context;
use Weft\Bus\Internal\MessageLogger;
use Weft\Bus\InvalidHandlerError;
use Weft\Internal\AttributeArea;
use Weft\Internal\AttributeCheck;
use Weft\Sql\Database;
use Weft\Sql\Transaction;

/**
 * Resolves the parameters of a handler by type.
 *
 * @internal
 */
final class Parameters
{
    public function __construct(
        private readonly ?Database $database,
        private readonly ?ContainerInterface $container,
        private readonly LoggerInterface $logger,
    ) {}

    /** @throws InvalidHandlerError when the method cannot be called with a message */
    public static function check(\ReflectionMethod $method): void
    {
        $problem = match (true) {
            !$method->isPublic() => 'is not public',
            $method->isStatic() => 'is static',
            $method->isAbstract() => 'is abstract',
            $method->isGenerator() => 'is a generator, which would return before its body runs',
            default => null,
        };
        if ($problem !== null) {
            throw self::invalid($method, $problem);
        }
    }

    /**
     * The classes that the first parameter accepts.
     *
     * @param bool $any whether `object` is allowed, for which the list is empty
     * @return list<class-string> in the order of the declaration
     * @throws InvalidHandlerError
     */
    public static function messages(\ReflectionMethod $method, bool $any = false): array
    {
        $parameters = $method->getParameters();
        $type = ($parameters[0] ?? null)?->getType();
        if ($any && $type instanceof \ReflectionNamedType && $type->getName() === 'object' && !$type->allowsNull()) {
            return [];
        }
        $types = $type instanceof \ReflectionUnionType ? $type->getTypes() : [$type];
        $others = \array_filter($types, static fn(?\ReflectionType $type): bool => !$type instanceof \ReflectionNamedType || $type->isBuiltin() || $type->allowsNull());
        $problem = match (true) {
            $parameters === [] => 'has no parameter for the message',
            $type === null => "has no type for its message \${$parameters[0]->name}",
            (string) $type === 'object' => 'takes any object; an event listener may do so with a pattern of types: #[EventListener(types: \'shop.*\')]',
            $others !== [] => "has the type {$type} for its message, which must be a class or several of them",
            $parameters[0]->isPassedByReference(), $parameters[0]->isVariadic() => 'takes its message by reference or as a variadic',
            default => null,
        };
        if ($problem !== null) {
            throw self::invalid($method, $problem);
        }
        $classes = [];
        foreach ($types as $type) {
            \assert($type instanceof \ReflectionNamedType);
            $classes[] = $type->getName() === 'self' ? $method->class : $type->getName();
        }

        foreach ($classes as $class) {
            self::refuseMissing($method, $class);
        }

        /** @var list<class-string> */
        return \array_values(\array_unique($classes));
    }

    /** @throws InvalidHandlerError when there is no such message class */
    public static function refuseMissing(\ReflectionMethod $method, string $class): void
    {
        if (!\class_exists($class) && !\interface_exists($class)) {
            throw self::invalid($method, "takes {$class}, a class that does not exist, at {$method->getFileName()}:{$method->getStartLine()}");
        }
    }

    /**
     * Resolves the parameters after the message.
     *
     * @param list<class-string> $given classes of arguments that each call provides
     * @return list<string|\Closure(?Context): mixed> one of `$given`, or a closure that creates the argument
     * @throws InvalidHandlerError
     */
    public function others(\ReflectionMethod $method, array $given): array
    {
        $arguments = [];
        foreach (\array_slice($method->getParameters(), 1) as $parameter) {
            $arguments[] = $this->argument($method, $parameter, $given);
        }

        return $arguments;
    }

    /**
     * @param \ReflectionClass<object> $class with methods that may be handlers
     * @throws InvalidHandlerError
     */
    public static function refuseWrongAttributes(\ReflectionClass $class): void
    {
        if (($problem = AttributeCheck::on($class, AttributeArea::Bus)) !== null) {
            throw new InvalidHandlerError("{$class->name} {$problem}");
        }
        foreach ($class->getMethods() as $method) {
            if (($problem = AttributeCheck::on($method, AttributeArea::Bus)) !== null) {
                throw self::invalid($method, $problem);
            }
        }
    }

    public static function invalid(\ReflectionMethod $method, string $problem): InvalidHandlerError
    {
        return new InvalidHandlerError("Handler {$method->class}::{$method->name}() {$problem}");
    }

    /** @param list<class-string> $given */
    private function argument(\ReflectionMethod $method, \ReflectionParameter $parameter, array $given): string|\Closure
    {
        $type = $parameter->getType();
        $isClass = $type instanceof \ReflectionNamedType && !$type->isBuiltin();
        if ($parameter->isPassedByReference() || $parameter->isVariadic()) {
            throw self::invalid($method, "takes \${$parameter->name} by reference or as a variadic");
        }

        return ($isClass ? $this->byType($method, $type->getName(), $given) : null)
            ?? self::fallback($parameter)
            ?? throw self::invalid($method, $this->unresolved($parameter, $given));
    }

    /**
     * @param list<class-string> $given
     * @return string|(\Closure(?Context): mixed)|null
     */
    private function byType(\ReflectionMethod $method, string $class, array $given): string|\Closure|null
    {
        [$database, $container] = [$this->database, $this->container];

        return match (true) {
            $class === Transaction::class && $database === null
                => throw self::invalid($method, 'has a Transaction parameter, but the bus was connected without a database'),
            \in_array($class, $given, true) => $class,
            $class === Database::class && $database !== null => static fn(): Database => $database,
            $class === LoggerInterface::class => $this->logger(...),
            $container !== null && $container->has($class) => static fn(): mixed => $container->get($class),
            default => null,
        };
    }

    /** @param Context|null $context of the message; null for a batch */
    private function logger(?Context $context): LoggerInterface
    {
        $logger = $this->container?->has(LoggerInterface::class) ? $this->container->get(LoggerInterface::class) : $this->logger;
        \assert($logger instanceof LoggerInterface);

        return $context === null ? $logger : new MessageLogger($logger, $context);
    }

    private static function fallback(\ReflectionParameter $parameter): ?\Closure
    {
        return match (true) {
            $parameter->isDefaultValueAvailable() => static fn(): mixed => $parameter->getDefaultValue(),
            $parameter->getType()?->allowsNull() ?? false => static fn(): mixed => null,
            default => null,
        };
    }

    /** @param list<class-string> $given */
    private function unresolved(\ReflectionParameter $parameter, array $given): string
    {
        $type = $parameter->getType() ?? 'no type';
        $names = \array_map(static fn(string $class): string => \substr((string) \strrchr($class, '\\'), 1), $given);
        $known = \implode(', ', $names) . ', Database, LoggerInterface and ' . ($this->container !== null
            ? 'the services of the container, which has no service of this name'
            : 'the services of a container, but the bus was connected without one');

        return "has the parameter \${$parameter->name} ({$type}), which cannot be resolved; available are {$known}";
    }
}
