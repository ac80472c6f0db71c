<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

use Psr\Container\ContainerInterface;
use Psr\Log\LoggerInterface;
use Weft\Bus\Batch;
use Weft\Bus\CommandHandler;
use Weft\Bus\Context;
use Weft\Bus\EventListener;
use Weft\Bus\Internal\Codec\Codec;
use Weft\Bus\InvalidHandler;
use Weft\Bus\QueryHandler;
use Weft\Bus\Validator;
use Weft\Sql\Database;
use Weft\Sql\Transaction;

/**
 * Turns the marked methods of plain objects into closures that take message, context and transaction.
 *
 * @internal
 */
final class HandlerCompiler
{
    public function __construct(
        private readonly Codec $codec,
        private readonly ?Database $database,
        private readonly ?ContainerInterface $container,
        private readonly LoggerInterface $logger,
        private readonly ?Validator $validator,
    ) {}

    /**
     * @return list<Handler>
     * @throws InvalidHandler
     */
    public function compile(object $service): array
    {
        $handlers = [];
        foreach ((new \ReflectionObject($service))->getMethods() as $method) {
            $kind = self::kind($method);
            if ($kind !== null) {
                $handlers[] = $this->handler($service, $method, $kind);
            }
        }

        return $handlers !== [] ? $handlers : throw new InvalidHandler(
            \get_debug_type($service) . ' has no method marked with #[CommandHandler], #[EventListener] or #[QueryHandler]',
        );
    }

    private static function kind(\ReflectionMethod $method): ?Kind
    {
        $kinds = \array_filter([
            'command handler' => $method->getAttributes(CommandHandler::class) !== [] ? Kind::Command : null,
            'event listener' => $method->getAttributes(EventListener::class) !== [] ? Kind::Event : null,
            'query handler' => $method->getAttributes(QueryHandler::class) !== [] ? Kind::Query : null,
        ]);
        if (\count($kinds) > 1) {
            throw self::invalid($method, 'is marked as both ' . \implode(' and ', \array_keys($kinds)));
        }

        return \array_values($kinds)[0] ?? null;
    }

    private function handler(object $service, \ReflectionMethod $method, Kind $kind): Handler
    {
        $problem = match (true) {
            !$method->isPublic() => 'is not public',
            $method->isStatic() => 'is static',
            $method->isAbstract() => 'is abstract',
            $method->isGenerator() => 'is a generator: it would return before it has run',
            default => null,
        };
        if ($problem !== null) {
            throw self::invalid($method, $problem);
        }
        $parameters = $method->getParameters();
        $batch = $method->getAttributes(Batch::class) !== [];
        if ($batch && $kind === Kind::Query) {
            throw self::invalid($method, 'takes batches and is a query handler; each query has an answer of its own');
        }
        $message = $batch ? self::batchOf($method, $parameters) : self::messageClass($method, $parameters);
        $arguments = [];
        foreach (\array_slice($parameters, 1) as $parameter) {
            $arguments[] = $this->argument($method, $parameter);
        }

        return new Handler(
            self::name($method),
            $kind,
            $this->codec->of($message),
            \in_array(Transaction::class, $arguments, true),
            $batch ? self::batchInvoker($method, $service, $arguments) : self::invoker($method->getClosure($service), $arguments),
            Attributes::of($method, $service, $message, $this->validator),
        );
    }

    /**
     * @param list<\ReflectionParameter> $parameters
     * @return class-string
     */
    private static function messageClass(\ReflectionMethod $method, array $parameters): string
    {
        $type = ($parameters[0] ?? null)?->getType();
        $problem = match (true) {
            $parameters === [] => 'has no parameter for the message',
            $type === null => "has no type for its message \${$parameters[0]->name}",
            !$type instanceof \ReflectionNamedType => "has the type {$type} for its message; one handler takes one class",
            $type->isBuiltin(), $type->allowsNull() => "has the type {$type} for its message, which must be a class",
            $parameters[0]->isPassedByReference(), $parameters[0]->isVariadic() => 'takes its message by reference or as a variadic',
            default => null,
        };
        if ($problem !== null) {
            throw self::invalid($method, $problem);
        }

        return $type->getName() === 'self' ? $method->class : $type->getName();
    }

    /**
     * @param list<\ReflectionParameter> $parameters
     * @return class-string
     */
    private static function batchOf(\ReflectionMethod $method, array $parameters): string
    {
        $type = ($parameters[0] ?? null)?->getType();
        if (!$type instanceof \ReflectionNamedType || $type->getName() !== 'array' || $parameters[0]->isPassedByReference() || $parameters[0]->isVariadic()) {
            throw self::invalid($method, 'takes batches, so its first parameter must be an array, the list of BatchItem');
        }

        return $method->getAttributes(Batch::class)[0]->newInstance()->of;
    }

    /** @return string|\Closure(): mixed Context::class, Transaction::class, or what makes the argument */
    private function argument(\ReflectionMethod $method, \ReflectionParameter $parameter): string|\Closure
    {
        $type = $parameter->getType();
        $isClass = $type instanceof \ReflectionNamedType && !$type->isBuiltin();
        if ($parameter->isPassedByReference() || $parameter->isVariadic()) {
            throw self::invalid($method, "takes \${$parameter->name} by reference or as a variadic");
        }

        return ($isClass ? $this->byType($method, $type->getName()) : null)
            ?? self::fallback($parameter)
            ?? throw self::invalid($method, self::unresolved($parameter, $this->container !== null));
    }

    /** @return string|(\Closure(): mixed)|null */
    private function byType(\ReflectionMethod $method, string $class): string|\Closure|null
    {
        return match (true) {
            $class === Context::class => $class,
            $class === Transaction::class => $this->database !== null
                ? $class
                : throw self::invalid($method, 'asks for a Transaction, but the bus was connected without a database'),
            $class === Database::class && $this->database !== null => fn(): Database => $this->database,
            $this->container?->has($class) ?? false => fn(): mixed => $this->container->get($class),
            $class === LoggerInterface::class => fn(): LoggerInterface => $this->logger,
            default => null,
        };
    }

    private static function fallback(\ReflectionParameter $parameter): ?\Closure
    {
        return match (true) {
            $parameter->isDefaultValueAvailable() => static fn(): mixed => $parameter->getDefaultValue(),
            $parameter->getType()?->allowsNull() ?? false => static fn(): mixed => null,
            default => null,
        };
    }

    private static function unresolved(\ReflectionParameter $parameter, bool $hasContainer): string
    {
        $type = $parameter->getType() ?? 'no type';
        $known = 'Context, Transaction, Database, LoggerInterface and ' . ($hasContainer
            ? 'the services of the container, which has none of this name'
            : 'the services of a container, but the bus was connected without one');

        return "asks for \${$parameter->name} ({$type}), and nothing provides it; provided are {$known}";
    }

    /** @param list<string|\Closure(): mixed> $arguments */
    private static function invoker(\Closure $method, array $arguments): \Closure
    {
        return match ($arguments) {
            [] => static fn(object $message, Context $context, ?Transaction $transaction): mixed => $method($message),
            [Context::class] => static fn(object $message, Context $context, ?Transaction $transaction): mixed => $method($message, $context),
            [Transaction::class] => static fn(object $message, Context $context, ?Transaction $transaction): mixed => $method($message, $transaction),
            [Context::class, Transaction::class] => static fn(object $message, Context $context, ?Transaction $transaction): mixed => $method($message, $context, $transaction),
            [Transaction::class, Context::class] => static fn(object $message, Context $context, ?Transaction $transaction): mixed => $method($message, $transaction, $context),
            default => static function (object $message, Context $context, ?Transaction $transaction) use ($method, $arguments): mixed {
                $values = [];
                foreach ($arguments as $argument) {
                    $values[] = match ($argument) {
                        Context::class => $context,
                        Transaction::class => $transaction,
                        default => $argument(),
                    };
                }

                return $method($message, ...$values);
            },
        };
    }

    /** @param list<string|\Closure(): mixed> $arguments */
    private static function batchInvoker(\ReflectionMethod $method, object $service, array $arguments): \Closure
    {
        if (\in_array(Context::class, $arguments, true)) {
            throw self::invalid($method, 'takes batches and asks for a Context; each BatchItem has its own');
        }
        $call = $method->getClosure($service);

        return static function (array $items, ?Transaction $transaction) use ($call, $arguments): mixed {
            return $call($items, ...\array_map(static fn(string|\Closure $argument): mixed => $argument instanceof \Closure ? $argument() : $transaction, $arguments));
        };
    }

    private static function name(\ReflectionMethod $method): string
    {
        return "{$method->class}::{$method->name}";
    }

    private static function invalid(\ReflectionMethod $method, string $problem): InvalidHandler
    {
        return new InvalidHandler('Handler ' . self::name($method) . "() {$problem}");
    }
}
