<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Handlers;

use Weft\Bus\Batch;
use Weft\Bus\CommandHandler;
use Weft\Bus\Context;
use Weft\Bus\EventListener;
use Weft\Bus\Internal\Codec\Codec;
use Weft\Bus\Internal\Codec\MessageClass;
use Weft\Bus\Internal\MessageKind;
use Weft\Bus\InvalidHandlerError;
use Weft\Bus\QueryHandler;
use Weft\Sql\Transaction;
use Weft\Validation\Validator;

/**
 * Compiles the marked methods of objects into closures that take message, context and transaction.
 *
 * @internal
 */
final class HandlerCompiler
{
    public function __construct(
        private readonly Codec $codec,
        private readonly Parameters $parameters,
        private readonly ?Validator $validator,
    ) {}

    /**
     * @return list<Handler|WideListener> empty when no method is marked
     * @throws InvalidHandlerError
     */
    public function compile(object $service): array
    {
        $handlers = [];
        $class = new \ReflectionObject($service);
        Parameters::refuseWrongAttributes($class);
        foreach ($class->getMethods() as $method) {
            $kind = self::kind($method);
            if ($kind !== null) {
                \array_push($handlers, ...$this->handlers($service, $class, $method, $kind));
            }
        }

        return $handlers;
    }

    private static function kind(\ReflectionMethod $method): ?MessageKind
    {
        $kinds = \array_filter([
            'command handler' => $method->getAttributes(CommandHandler::class) !== [] ? MessageKind::Command : null,
            'event listener' => $method->getAttributes(EventListener::class) !== [] ? MessageKind::Event : null,
            'query handler' => $method->getAttributes(QueryHandler::class) !== [] ? MessageKind::Query : null,
        ]);
        if (\count($kinds) > 1) {
            throw Parameters::invalid($method, 'is marked as both ' . \implode(' and ', \array_keys($kinds)));
        }

        return \array_values($kinds)[0] ?? null;
    }

    /**
     * @param \ReflectionClass<object> $class of the service
     * @return list<Handler|WideListener>
     */
    private function handlers(object $service, \ReflectionClass $class, \ReflectionMethod $method, MessageKind $kind): array
    {
        Parameters::check($method);
        $parameters = \array_values($method->getParameters());
        $batch = $method->getAttributes(Batch::class) !== [];
        if ($batch && $kind === MessageKind::Query) {
            throw Parameters::invalid($method, 'takes batches and is a query handler; a query handler takes one query');
        }
        $pattern = $kind === MessageKind::Event ? $method->getAttributes(EventListener::class)[0]->newInstance()->types : null;
        if ($batch && $pattern !== null) {
            throw Parameters::invalid($method, 'takes batches of one class and has a pattern of types');
        }
        $classes = $batch ? [self::batchOf($method, $parameters)] : Parameters::messages($method, $pattern !== null);
        $arguments = $this->parameters->others($method, [Context::class, Transaction::class]);
        $name = HandlerName::of($class, $method);
        $former = HandlerName::former($method);
        $transactional = \in_array(Transaction::class, $arguments, true);
        $invoke = $batch ? self::batchInvoker($method, $service, $arguments) : self::invoker($method->getClosure($service), $arguments);
        $make = fn(MessageClass $message): Handler => new Handler($name, $kind, $message, $transactional, $invoke, Attributes::of($method, $class, $message->class, $this->validator), formerName: $former);
        if ($classes === []) {
            return [new WideListener($name, null, $pattern, $make)];
        }
        $handlers = [];
        foreach ($classes as $message) {
            $isWide = $kind === MessageKind::Event && !$batch && self::hasDescendants($message);
            if ($pattern === null && !($isWide && self::isAbstract($message))) {
                $handlers[] = $make($this->codec->of($message));
            }
            if ($isWide || $pattern !== null) {
                $handlers[] = new WideListener($name, $message, $pattern, $make);
            }
        }

        return $handlers;
    }

    private static function hasDescendants(string $class): bool
    {
        return \interface_exists($class) || (\class_exists($class) && !(new \ReflectionClass($class))->isFinal());
    }

    /** @param class-string $class */
    private static function isAbstract(string $class): bool
    {
        $reflection = new \ReflectionClass($class);

        return $reflection->isInterface() || $reflection->isAbstract();
    }

    /**
     * @param list<\ReflectionParameter> $parameters
     * @return class-string
     */
    private static function batchOf(\ReflectionMethod $method, array $parameters): string
    {
        $type = ($parameters[0] ?? null)?->getType();
        if (!$type instanceof \ReflectionNamedType || $type->getName() !== 'array' || $parameters[0]->isPassedByReference() || $parameters[0]->isVariadic()) {
            throw Parameters::invalid($method, 'takes batches, so its first parameter must be an array, the list of BatchItem');
        }

        $class = $method->getAttributes(Batch::class)[0]->newInstance()->of;
        Parameters::refuseMissing($method, $class);

        return $class;
    }

    /** @param list<string|\Closure(?Context): mixed> $arguments */
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
                        default => $argument($context),
                    };
                }

                return $method($message, ...$values);
            },
        };
    }

    /** @param list<string|\Closure(?Context): mixed> $arguments */
    private static function batchInvoker(\ReflectionMethod $method, object $service, array $arguments): \Closure
    {
        if (\in_array(Context::class, $arguments, true)) {
            throw Parameters::invalid($method, 'takes batches and a Context; each BatchItem has a context of its own');
        }
        $call = $method->getClosure($service);

        return static function (array $items, ?Transaction $transaction) use ($call, $arguments): mixed {
            return $call($items, ...\array_map(static fn(string|\Closure $argument): mixed => $argument instanceof \Closure ? $argument(null) : $transaction, $arguments));
        };
    }
}
