<?php

declare(strict_types=1);

namespace Weft\Tests;

/** A program without the extension that calls every public function, constructor and method of Weft with values of the declared types. */
final class WithoutExtension
{
    /** They end the process, or read its standard input. */
    private const LEFT_OUT = ['Weft\Cli\Program::run'];

    private int $calls = 0;
    /** @var list<string> */
    private array $refused = [];
    /** @var list<string> */
    private array $raw = [];
    /** @var array<class-string, object|null> */
    private array $objects = [];

    /** @return array{calls: int, refused: list<string>, raw: list<string>} refused with Weft's text, and failed with PHP's own */
    public static function report(string $sources): array
    {
        $program = new self();
        foreach (\get_defined_functions()['user'] as $function) {
            \preg_match('/^weft\\\\\w+$/', $function) === 1 && $program->call($function, new \ReflectionFunction($function), $function);
        }
        foreach (self::classes($sources) as $name) {
            $program->ofClass($name);
        }

        return ['calls' => $program->calls, 'refused' => $program->refused, 'raw' => $program->raw];
    }

    /** @return iterable<string> */
    private static function classes(string $sources): iterable
    {
        $files = new \RecursiveIteratorIterator(new \RecursiveDirectoryIterator($sources, \FilesystemIterator::SKIP_DOTS));
        $names = [];
        foreach ($files as $file) {
            $name = \substr($file->getPathname(), \strlen($sources) + 1, -4);
            // The bridges need frameworks, which say themselves what is missing.
            if (\preg_match('{^(Bridge/|.*\bInternal/|(.*/)?[a-z]\w*$)}', $name) !== 1 && \str_contains((string) \file_get_contents($file->getPathname()), 'class ')) {
                $names[] = 'Weft\\' . \strtr($name, '/', '\\');
            }
        }
        \sort($names);

        return $names;
    }

    private function ofClass(string $name): void
    {
        $class = $this->guarded($name, static fn(): ?\ReflectionClass => \class_exists($name) ? new \ReflectionClass($name) : null);
        if ($class === null) {
            return;
        }
        $object = $class->isInstantiable() ? $this->object($name) : null;
        foreach ($class->getMethods(\ReflectionMethod::IS_PUBLIC) as $method) {
            $label = "$name::{$method->getName()}";
            if ($method->class !== $name || $method->isConstructor() || $method->isAbstract() || \in_array($label, self::LEFT_OUT, true)) {
                continue;
            }
            if ($method->isStatic()) {
                $this->call($label, $method, [$name, $method->getName()]);
            } elseif ($object !== null) {
                $this->call($label, $method, [$object, $method->getName()]);
            }
        }
    }

    private function call(string $label, \ReflectionFunctionAbstract $function, callable $callable): void
    {
        $this->guarded($label, fn(): mixed => self::consume($callable(...$this->arguments($function))));
    }

    /** A generator begins when it is read. */
    private static function consume(mixed $result): mixed
    {
        return $result instanceof \Generator ? $result->current() : $result;
    }

    private function guarded(string $label, \Closure $call): mixed
    {
        $this->calls++;
        try {
            return $call();
        } catch (\Throwable $thrown) {
            for ($cause = $thrown; $cause !== null; $cause = $cause->getPrevious()) {
                if (\str_starts_with($cause->getMessage(), 'Weft needs the PHP extension weft, which is not loaded. ')) {
                    $this->refused[] = $label;
                } elseif (\str_contains($cause->getMessage(), 'Weft\Native\\') || \str_contains($cause->getMessage(), 'other extensions of this PHP')) {
                    $this->raw[] = "$label: {$cause->getMessage()}";
                }
            }

            return null;
        }
    }

    private function object(string $name): ?object
    {
        if (\array_key_exists($name, $this->objects)) {
            return $this->objects[$name];
        }
        // Where a class needs an object of itself.
        $this->objects[$name] = null;
        $constructor = (new \ReflectionClass($name))->getConstructor();

        return $this->objects[$name] = $this->guarded("$name::__construct", fn(): object => new $name(...($constructor === null ? [] : $this->arguments($constructor))));
    }

    /** @return list<mixed> for the parameters that have no default */
    private function arguments(\ReflectionFunctionAbstract $function): array
    {
        $arguments = [];
        foreach ($function->getParameters() as $parameter) {
            if ($parameter->isOptional()) {
                break;
            }
            $arguments[] = $this->value($parameter->getType());
        }

        return $arguments;
    }

    private function value(?\ReflectionType $type): mixed
    {
        if ($type instanceof \ReflectionUnionType || $type instanceof \ReflectionIntersectionType) {
            return $this->value($type->getTypes()[0]);
        }
        $name = $type instanceof \ReflectionNamedType ? $type->getName() : 'mixed';

        return match (true) {
            $name === 'int' => 1,
            $name === 'float' => 0.5,
            $name === 'bool', $name === 'true' => true,
            $name === 'string' => 'x',
            $name === 'array', $name === 'iterable' => [static fn(): int => 1],
            $name === 'callable', $name === \Closure::class => static fn(): int => 1,
            $name === 'object' => new \stdClass(),
            \enum_exists($name) => $name::cases()[0],
            \class_exists($name) => (new \ReflectionClass($name))->isInstantiable() ? $this->object($name) : null,
            default => null,
        };
    }
}
