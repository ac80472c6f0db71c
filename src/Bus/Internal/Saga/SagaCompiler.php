<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Saga;

use Weft\Bus\Context;
use Weft\Bus\Header;
use Weft\Bus\Internal\Codec\Codec;
use Weft\Bus\Internal\Codec\MessageClass;
use Weft\Bus\Internal\Codec\MessageCompiler;
use Weft\Bus\Internal\Handlers\Attributes;
use Weft\Bus\Internal\Handlers\Handler;
use Weft\Bus\Internal\Handlers\HandlerName;
use Weft\Bus\Internal\Handlers\Parameters;
use Weft\Bus\Internal\MessageKind;
use Weft\Bus\InvalidHandlerError;
use Weft\Bus\Saga\Saga;
use Weft\Bus\Saga\SagaContext;
use Weft\Bus\Saga\SagaEnded;
use Weft\Bus\Saga\SagaListener;
use Weft\Bus\Saga\SagaReopened;
use Weft\Bus\Saga\SagaStart;
use Weft\Bus\Saga\SagaStarted;
use Weft\Bus\Saga\SagaTimeout;
use Weft\Sql\Database;
use Weft\Sql\Internal\Schema\Migrator;
use Weft\Sql\Transaction;
use Weft\Validation\Validator;

/**
 * Compiles the marked methods of saga classes into handlers that load, call and store their saga.
 *
 * @internal
 */
final class SagaCompiler
{
    /** @var array<string, SagaDefinition> by class and by name */
    public array $definitions = [];

    private bool $isReady = false;

    public function __construct(
        private readonly Codec $codec,
        private readonly Parameters $parameters,
        private readonly ?Validator $validator,
        public readonly ?SagaStore $store,
    ) {}

    /**
     * Compiles a saga without registering it.
     *
     * @param class-string $class
     * @return array{SagaDefinition, list<Handler>}
     * @throws InvalidHandlerError
     * @throws \Weft\Bus\InvalidMessageClassError when a property cannot be stored
     */
    public function compile(string $class): array
    {
        $definition = $this->define($class);
        $handlers = [];
        $starts = false;
        $reflection = new \ReflectionClass($class);
        Parameters::refuseWrongAttributes($reflection);
        foreach ($reflection->getMethods() as $method) {
            $mark = self::mark($method);
            if ($mark !== null) {
                $handlers[] = $this->handler($definition, $reflection, $method, $mark);
                $starts = $starts || $mark instanceof SagaStart;
            }
        }
        if (!$starts) {
            throw new InvalidHandlerError("Saga {$class} has no method marked with #[SagaStart]");
        }
        foreach ($definition->options->publishEvents ? [SagaStarted::class, SagaEnded::class, SagaReopened::class] : [] as $event) {
            $this->codec->of($event);
        }

        return [$definition, $handlers];
    }

    /** @param class-string $class */
    public function add(string $class, SagaDefinition $definition): void
    {
        $this->definitions[$class] = $this->definitions[$definition->name] = $definition;
    }

    public static function isSaga(string $class): bool
    {
        return \class_exists($class) && (new \ReflectionClass($class))->getAttributes(Saga::class) !== [];
    }

    /**
     * Creates or upgrades the tables.
     *
     * @param bool $always also without registered sagas
     */
    public function prepare(bool $always = false): void
    {
        if (!$this->isReady && ($always || $this->definitions !== [])) {
            $this->store === null || (new Migrator($this->store->database))->ensure(Tables::component());
            $this->isReady = true;
        }
    }

    public function hasSagas(): bool
    {
        return $this->definitions !== [];
    }

    private function define(string $class): SagaDefinition
    {
        $reflection = \class_exists($class) ? new \ReflectionClass($class) : null;
        $options = ($reflection?->getAttributes(Saga::class)[0] ?? null)?->newInstance();
        $name = $options?->name ?? $class;
        $problem = match (true) {
            $reflection === null => 'does not exist',
            $options === null => 'is not marked with #[Saga], and no container provides it; register handlers as objects, sagas by class name',
            $this->store === null => 'needs a database for its state: pass one to Bus::connect()',
            ($reflection->getConstructor()?->getNumberOfRequiredParameters() ?? 0) > 0 => 'has a constructor with required arguments; use parameters of its methods instead',
            isset($this->definitions[$class]) => 'is registered twice',
            isset($this->definitions[$name]) => "has the same name \"{$name}\" as another saga",
            \strlen($name) > 100 => 'has a class name of more than 100 bytes: set a name with #[Saga(name: …)]',
            default => null,
        };
        if ($problem !== null) {
            throw new InvalidHandlerError("Class {$class} cannot be registered as a saga: it {$problem}");
        }
        /**
         * @var Saga                     $options
         * @var \ReflectionClass<object> $reflection
         */

        return new SagaDefinition($options, new MessageClass($class, $name, $options->version, (new MessageCompiler())->shape($class, 'a saga')), self::ids($reflection, $options));
    }

    /**
     * @param \ReflectionClass<object> $class
     * @return list<string> the properties and headers whose values are ids
     */
    private static function ids(\ReflectionClass $class, Saga $options): array
    {
        $names = [Header::SAGA_ID, $options->by, $options->header];
        foreach ($class->getMethods() as $method) {
            foreach ($method->getAttributes(SagaStart::class) as $start) {
                \array_push($names, $start->newInstance()->by, $start->newInstance()->header);
            }
        }

        return \array_values(\array_filter($names, static fn(?string $name): bool => $name !== null));
    }

    private static function mark(\ReflectionMethod $method): SagaStart|SagaListener|SagaTimeout|null
    {
        $marks = [...$method->getAttributes(SagaStart::class), ...$method->getAttributes(SagaListener::class), ...$method->getAttributes(SagaTimeout::class)];
        if (\count($marks) > 1) {
            throw Parameters::invalid($method, 'has more than one of #[SagaStart], #[SagaListener] and #[SagaTimeout]');
        }

        return ($marks[0] ?? null)?->newInstance();
    }

    /** @param \ReflectionClass<object> $class of the saga */
    private function handler(SagaDefinition $definition, \ReflectionClass $class, \ReflectionMethod $method, SagaStart|SagaListener|SagaTimeout $mark): Handler
    {
        Parameters::check($method);
        $messages = Parameters::messages($method);
        if (\count($messages) > 1) {
            throw Parameters::invalid($method, 'takes several message classes; a method of a saga takes one');
        }
        $message = $messages[0];
        $arguments = $this->parameters->others($method, [SagaContext::class, Context::class, Transaction::class]);
        $acts = \in_array(Transaction::class, $arguments, true) || self::takesDatabase($method);
        $correlation = self::correlation($method, $mark, $definition->options, $message);
        /** @var SagaStore $store define() has asked for it */
        $store = $this->store;
        $step = new SagaInvoker($definition, self::role($mark, $definition->options), $correlation, $store, self::call($method, $arguments), $acts);

        return new Handler(
            HandlerName::of($class, $method),
            $mark instanceof SagaTimeout || $mark->command ? MessageKind::Command : MessageKind::Event,
            $this->codec->of($message),
            true,
            $step(...),
            Attributes::of($method, $class, $message, $this->validator),
            static fn(object $message, array $headers): string => "{$definition->name}\0{$correlation->key($message, $headers)}",
            HandlerName::former($method),
        );
    }

    private static function takesDatabase(\ReflectionMethod $method): bool
    {
        foreach ($method->getParameters() as $parameter) {
            $type = $parameter->getType();
            if ($type instanceof \ReflectionNamedType && $type->getName() === Database::class) {
                return true;
            }
        }

        return false;
    }

    private static function role(SagaStart|SagaListener|SagaTimeout $mark, Saga $options): SagaMethod
    {
        return match (true) {
            $mark instanceof SagaStart => new SagaMethod(starts: true, joinExisting: $mark->joinExisting, existing: $mark->existing),
            $mark instanceof SagaListener => new SagaMethod(starts: false, joinExisting: true, missing: $mark->missing ?? $options->missing),
            default => new SagaMethod(starts: false, joinExisting: true, times: true),
        };
    }

    /** @param class-string $message */
    private static function correlation(\ReflectionMethod $method, SagaStart|SagaListener|SagaTimeout $mark, Saga $options, string $message): Correlation
    {
        if ($mark instanceof SagaTimeout) {
            return Correlation::byHeader(Header::SAGA_ID);
        }
        [$by, $header] = $mark->by === null && $mark->header === null ? [$options->by, $options->header] : [$mark->by, $mark->header];
        if (($by === null) === ($header === null)) {
            throw Parameters::invalid($method, 'needs one property or one header that identifies the saga: set by: or header: of #[' . \substr((string) \strrchr($mark::class, '\\'), 1) . '] or #[Saga]');
        }
        if ($by !== null && !\property_exists($message, $by)) {
            throw Parameters::invalid($method, "correlates by the property \${$by}, which {$message} does not have");
        }

        return $by !== null ? Correlation::byProperty($message, $by) : Correlation::byHeader((string) $header);
    }

    /** @param list<string|\Closure(?Context): mixed> $arguments */
    private static function call(\ReflectionMethod $method, array $arguments): \Closure
    {
        $name = $method->name;

        return static function (object $saga, object $message, SagaContext $context) use ($name, $arguments): mixed {
            $values = [];
            foreach ($arguments as $argument) {
                $values[] = match ($argument) {
                    SagaContext::class => $context,
                    Context::class => $context->context(),
                    Transaction::class => $context->transaction(),
                    default => $argument($context->context()),
                };
            }

            return $saga->$name($message, ...$values);
        };
    }
}
