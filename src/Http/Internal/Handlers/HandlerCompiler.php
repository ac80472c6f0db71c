<?php

declare(strict_types=1);

namespace Weft\Http\Internal\Handlers;

use Weft\CloudEvents\CloudEvent;
use Weft\Http\Body;
use Weft\Http\Header;
use Weft\Http\InvalidRouteError;
use Weft\Http\Path;
use Weft\Http\PsrHandler;
use Weft\Http\Query;
use Weft\Http\Request;
use Weft\Http\Response;
use Weft\Http\Status;
use Weft\Http\WebSocket;
use Weft\Internal\AttributeArea;
use Weft\Internal\AttributeCheck;
use Weft\Internal\Codec\Compiler;
use Weft\Internal\Codec\Instance;
use Weft\Internal\Codec\Map;
use Weft\Internal\Codec\Optional;
use Weft\Internal\Codec\Sequence;
use Weft\Internal\Codec\Type;
use Weft\Internal\Codec\UnsupportedTypeException;
use Weft\Validation\Validate;

/**
 * Compiles the signature of a handler, when its route is added.
 *
 * @internal
 */
final class HandlerCompiler
{
    private static ?Compiler $inputs = null;
    /** Of bodies with keys such as `"0"`, where an array that is a list may have been an object. */
    private static ?Compiler $lenientInputs = null;

    private readonly string $name;

    /** @param list<string> $names of the path's parameters */
    private function __construct(
        private readonly \ReflectionFunction $function,
        private readonly string $path,
        private readonly array $names,
        private readonly ?string $label = null,
    ) {
        $class = $function->getClosureThis() === null || $function->isAnonymous() ? null : $function->getClosureScopeClass();
        $name = \str_contains($function->name, '{closure') ? 'Closure' : $function->name . '()';
        $this->name = $label ?? ($class === null ? $name : "{$class->name}::$name");
    }

    /**
     * @param list<string> $names of the path's parameters
     * @param string|null $label what Weft itself answers with, instead of the name and place of the handler
     *
     * @throws InvalidRouteError
     */
    public static function compile(\Closure $handler, string $path, array $names, ?string $label = null): HandlerPlan
    {
        return (new self(new \ReflectionFunction($handler), $path, $names, $label))->plan($handler);
    }

    /**
     * @param list<string> $names of the path's parameters
     *
     * @throws InvalidRouteError
     */
    public static function ofWebSocket(\Closure $handler, string $path, array $names): HandlerPlan
    {
        return (new self(new \ReflectionFunction($handler), $path, $names))->webSocketPlan($handler);
    }

    private function webSocketPlan(\Closure $handler): HandlerPlan
    {
        $this->function->isGenerator() && throw $this->invalid('is a generator, which would return before its body runs');
        $this->refuseWrongAttributes();
        /** @var list<\ReflectionParameter> $parameters */
        $parameters = $this->function->getParameters();
        $arguments = [];
        foreach ($parameters as $parameter) {
            $isSocket = (string) $parameter->getType() === WebSocket::class || $parameter->getType() === null && $parameter->getPosition() === 0;
            $argument = $isSocket ? new WebSocketArgument() : $this->argument($parameter);
            $arguments[] = self::isBody($argument) ? throw $this->invalid("has the parameter \${$parameter->name} with #[Body], but the request of a WebSocket has no body") : $argument;
        }

        return $this->planWith($handler, $parameters, $arguments, new ReturnValue(101, isNothing: true));
    }

    private function plan(\Closure $handler): HandlerPlan
    {
        $this->refuseWrongAttributes();
        $parameters = \array_values($this->function->getParameters());
        $arguments = \array_values(\array_map($this->argument(...), $parameters));
        $bodies = \array_filter($arguments, self::isBody(...));
        if (\count($bodies) > 1) {
            throw $this->invalid('has two parameters with #[Body]; a request has one body');
        }

        return $this->planWith($handler, $parameters, $arguments, $this->result());
    }

    /**
     * @param list<\ReflectionParameter> $parameters
     * @param list<Argument> $arguments
     */
    private function planWith(\Closure $handler, array $parameters, array $arguments, ReturnValue $result): HandlerPlan
    {
        $marked = \array_filter($parameters, static fn(\ReflectionParameter $parameter): bool => self::mark($parameter) !== null);
        $isTyped = $marked !== [] || $result->isData || $result->isNothing;

        return new HandlerPlan($handler, $this->name, $this->source(), $this->path, $arguments, $result, $this->validations($parameters, $arguments), $isTyped);
    }

    /** PHP ignores an attribute that is misspelt, and with it what the handler relies on. */
    private function refuseWrongAttributes(): void
    {
        foreach (\array_filter([$this->function, $this->ownClass()]) as $place) {
            $problem = AttributeCheck::on($place, AttributeArea::Http);
            $problem === null || throw $this->invalid($place instanceof \ReflectionClass ? "is in {$place->name}, which $problem" : $problem);
        }
        foreach ($this->function->getParameters() as $parameter) {
            $problem = AttributeCheck::on($parameter, AttributeArea::Http);
            $problem === null || throw $this->wrong($parameter, $problem);
        }
    }

    private function argument(\ReflectionParameter $parameter): Argument
    {
        $mark = self::mark($parameter);
        $name = ($mark instanceof Body ? null : $mark?->name) ?? $parameter->name;
        if ($parameter->isVariadic() || $parameter->isPassedByReference()) {
            throw $this->wrong($parameter, 'is variadic or taken by reference');
        }

        return match (true) {
            $mark instanceof Body => $this->body($parameter),
            $mark instanceof Query => $this->query($parameter, $name),
            $mark instanceof Header => $this->header($parameter, $mark->name ?? \strtolower((string) \preg_replace('/(?<=[a-z0-9])(?=[A-Z])|_/', '-', $parameter->name))),
            $mark instanceof Path, \in_array($name, $this->names, true) => $this->path($parameter, $name),
            self::isRequest($parameter) => new RequestArgument(),
            default => throw $this->wrong($parameter, $this->withoutSource($parameter, $name)),
        };
    }

    private function withoutSource(\ReflectionParameter $parameter, string $name): string
    {
        $type = $parameter->getType();
        $class = $type instanceof \ReflectionNamedType && !$type->isBuiltin() ? $type->getName() : null;
        $mark = 'Mark it #[Body], #[Query] or #[Header]';
        if ($class === null || \enum_exists($class) || \is_a($class, \DateTimeInterface::class, true) || !\class_exists($class) && !\interface_exists($class)) {
            return self::ofOtherFramework((string) $class) ?? "has no source: the path has no {{$name}}, and only the Request comes by its type. $mark";
        }
        $capture = "capture it, by `use (\${$parameter->name})` of a closure, or as a property of the object whose method is the handler";

        return self::ofOtherFramework($class) ?? ($this->isService($parameter, $class)
            ? "is a service ($class); of those a handler gets none: $capture"
            : "has no source: only the Request comes by its type. $mark if the request contains it; if it is a service, $capture");
    }

    /** What to write for the request of another framework. */
    private static function ofOtherFramework(string $class): ?string
    {
        // By name as well: the class of a library that is not installed has no parents.
        $is = static fn(string ...$names): bool => \array_filter($names, static fn(string $name): bool => $class === $name || \is_a($class, $name, true)) !== [];
        $handler = match (true) {
            $is('Illuminate\Http\Request') => '`php artisan weft:serve` serves applications of Laravel',
            $is('Symfony\Component\HttpFoundation\Request') => 'Weft\Bridge\Symfony\SymfonyHandler serves applications of Symfony',
            $is('Psr\Http\Message\ServerRequestInterface', 'Psr\Http\Message\RequestInterface') => PsrHandler::class . ' serves applications of PSR-15',
            default => null,
        };

        return $handler === null ? null : "is a request of another kind ($class): take " . Request::class . "; $handler";
    }

    /** Whether no request could contain such an object. */
    private function isService(\ReflectionParameter $parameter, string $class): bool
    {
        try {
            JsonValue::compiler()->parameter($parameter);
        } catch (UnsupportedTypeException) {
            return !\is_a($class, CloudEvent::class, true);
        }

        return false;
    }

    private static function mark(\ReflectionParameter $parameter): Body|Query|Header|Path|null
    {
        foreach ([Body::class, Query::class, Header::class, Path::class] as $class) {
            $attribute = $parameter->getAttributes($class)[0] ?? null;
            if ($attribute !== null) {
                return $attribute->newInstance();
            }
        }

        return null;
    }

    private static function isRequest(\ReflectionParameter $parameter): bool
    {
        $type = $parameter->getType();

        return $type instanceof \ReflectionNamedType && $type->getName() === Request::class
            || $type === null && $parameter->getPosition() === 0 && $parameter->getName() === 'request';
    }

    public static function isBody(Argument $argument): bool
    {
        return $argument instanceof BodyArgument || $argument instanceof CloudEventArgument;
    }

    private function body(\ReflectionParameter $parameter): BodyArgument|CloudEventArgument
    {
        if ((string) $parameter->getType() === CloudEvent::class) {
            return new CloudEventArgument();
        }

        $makeLenient = static fn(): Type
            => (self::$lenientInputs ??= new Compiler(new InputRules(), mapsTakeLists: true, objectsTakeLists: true))->parameter($parameter);
        $default = match (true) {
            // Made for each request: an object is not shared.
            $parameter->isDefaultValueAvailable() => $parameter->getDefaultValue(...),
            $parameter->allowsNull() => static fn(): mixed => null,
            default => null,
        };

        return new BodyArgument($this->type($parameter), $makeLenient, $default);
    }

    private function path(\ReflectionParameter $parameter, string $name): PathArgument
    {
        if (!\in_array($name, $this->names, true)) {
            throw $this->wrong($parameter, "is marked #[Path], but the path has no {{$name}}");
        }
        $type = $parameter->getType() === null || (string) $parameter->getType() === 'mixed' ? \Weft\Internal\Codec\Scalar::Text : $this->type($parameter);

        return TextValue::isSupported($type) ? new PathArgument($name, $type) : throw $this->wrong($parameter, 'is ' . (string) $parameter->getType() . '; a path parameter is a string, an int, a float or a backed enum');
    }

    private function query(\ReflectionParameter $parameter, string $name): Argument
    {
        $type = $this->type($parameter);
        if ($type instanceof Instance) {
            foreach ($type->shape()->fields() as $field) {
                if (!QueryArgument::isSupported($field->type)) {
                    throw $this->wrong($parameter, "is {$type->class}, whose property \${$field->name} ({$field->type->name()}) cannot be a query parameter");
                }
            }

            return new QueryObjectArgument($type->shape());
        }
        [$isRequired, $default] = self::default($parameter);

        return QueryArgument::isSupported($type) ? new QueryArgument($name, $type, $isRequired, $default) : throw $this->wrong($parameter, "({$type->name()}) cannot be a query parameter");
    }

    private function header(\ReflectionParameter $parameter, string $name): HeaderArgument
    {
        $type = $this->type($parameter);
        if (\preg_match('/^[!#$%&\'*+\-.^_`|~0-9A-Za-z]+$/D', $name) !== 1) {
            throw $this->wrong($parameter, "names the header field \"$name\", which is not a token");
        }
        [$isRequired, $default] = self::default($parameter);

        return TextValue::isSupported($type) ? new HeaderArgument(\strtolower($name), $type, $isRequired, $default) : throw $this->wrong($parameter, "({$type->name()}) cannot be a header field");
    }

    /** @return array{bool, mixed} whether it is required, and its default */
    private static function default(\ReflectionParameter $parameter): array
    {
        $hasDefault = $parameter->isDefaultValueAvailable();

        return [!$hasDefault && !$parameter->allowsNull(), $hasDefault ? $parameter->getDefaultValue() : null];
    }

    private function type(\ReflectionParameter $parameter): Type
    {
        try {
            return (self::$inputs ??= new Compiler(new InputRules(), mapsTakeLists: false, objectsTakeLists: false, failed: 'decoded'))->parameter($parameter);
        } catch (UnsupportedTypeException $unsupported) {
            throw $this->wrong($parameter, $unsupported->withAdvice("@param list<T> \${$parameter->name}"));
        }
    }

    private function result(): ReturnValue
    {
        $status = ($this->function->getAttributes(Status::class)[0] ?? null)?->newInstance()->code ?? 200;
        $declared = $this->function->getReturnType();
        $name = $declared instanceof \ReflectionNamedType ? $declared->getName() : null;
        if ($name === 'void' || $name === 'null') {
            return new ReturnValue($status, isNothing: true);
        }
        if ($this->function->isGenerator()) {
            throw $this->invalid('is a generator, which would return before its body runs; to stream, return Response::stream() with the generator of another function');
        }
        if (\in_array($name, ['string', 'int', 'float', 'bool', 'iterable', 'callable', 'Generator', 'Iterator', 'Traversable', 'Closure'], true)) {
            throw $this->invalid("returns $declared; return an object or an array, which become JSON, or a Response: Response::text(), Response::stream()");
        }
        if ($name === null || \in_array($name, [Response::class, 'never', 'mixed', 'object'], true)) {
            return new ReturnValue($status);
        }
        if ($name === 'stdClass' || \is_a($name, \JsonSerializable::class, true)) {
            return new ReturnValue($status, isData: true);
        }
        if ($name === 'array') {
            return new ReturnValue($status, type: $this->returned(), isData: true);
        }
        if ($declared instanceof \ReflectionNamedType && !$declared->isBuiltin() && !\class_exists($name) && !\interface_exists($name) && !\in_array($name, ['self', 'static', 'parent'], true)) {
            throw $this->invalid("declares the return type $name, which does not exist");
        }
        $type = $this->returned() ?? throw $this->invalid("returns $declared, which cannot be encoded as JSON");
        $inner = $type instanceof Optional ? $type->inner : $type;

        return new ReturnValue($status, $inner instanceof Instance ? $inner->shape() : null, $type, isData: true);
    }

    /** Null for an array whose elements are not documented: it is encoded as it is. */
    private function returned(): ?Type
    {
        try {
            return JsonValue::compiler()->returned($this->function);
        } catch (UnsupportedTypeException $unsupported) {
            $isArray = (string) $this->function->getReturnType() === 'array';

            return $isArray ? null : throw $this->invalid("returns a type that {$unsupported->withAdvice('@return list<T> or array<string, T>')}");
        }
    }

    /**
     * @param list<\ReflectionParameter> $parameters
     * @param list<Argument> $arguments
     *
     * @return array<int, ValidationRule> by the index of the argument
     */
    private function validations(array $parameters, array $arguments): array
    {
        $rules = [];
        foreach ($arguments as $index => $argument) {
            $class = match (true) {
                $argument instanceof BodyArgument => self::classOf($argument->type),
                $argument instanceof QueryObjectArgument => (string) $parameters[$index]->getType(),
                default => null,
            };
            $rule = $class === null ? null : $this->rule(\ltrim($class, '?'));
            if ($rule !== null) {
                $rules[$index] = new ValidationRule($rule->groups, $argument instanceof BodyArgument);
            }
        }

        return $rules !== [] || $this->function->getAttributes(Validate::class) === []
            ? $rules
            : throw $this->invalid('has #[Validate], but no parameter with #[Body] or #[Query] that is an object');
    }

    /** The class of the objects in a body, in lists and maps too; null if it has none. */
    private static function classOf(Type $type): ?string
    {
        return match (true) {
            $type instanceof Instance => $type->class,
            $type instanceof Optional => self::classOf($type->inner),
            $type instanceof Sequence, $type instanceof Map => self::classOf($type->item),
            default => null,
        };
    }

    private function rule(string $class): ?Validate
    {
        $places = [$this->function, $this->ownClass(), \class_exists($class) ? new \ReflectionClass($class) : null];
        foreach ($places as $place) {
            $attribute = $place?->getAttributes(Validate::class)[0] ?? null;
            if ($attribute !== null) {
                return $attribute->newInstance();
            }
        }

        return null;
    }

    /** The class in whose code the handler is. A file that a method includes has that method's class as its scope, too. */
    private function ownClass(): ?\ReflectionClass
    {
        $class = $this->function->getClosureScopeClass();
        if ($class === null || !$this->function->isAnonymous()) {
            return $class;
        }
        $files = \array_map(static fn(\ReflectionClass $place): string|false => $place->getFileName(), [$class, ...\array_values($class->getTraits())]);

        return \in_array($this->function->getFileName(), $files, true) ? $class : null;
    }

    private function wrong(\ReflectionParameter $parameter, string $problem): InvalidRouteError
    {
        return $this->invalid("has the parameter \${$parameter->name}, which $problem");
    }

    private function invalid(string $problem): InvalidRouteError
    {
        return new InvalidRouteError("The handler {$this->source()} of \"{$this->path}\" $problem");
    }

    private function source(): string
    {
        $file = $this->function->getFileName();

        return $file === false || $this->label !== null ? $this->name : "{$this->name} {$file}:{$this->function->getStartLine()}";
    }
}
