<?php

declare(strict_types=1);

namespace Weft\Internal\Codec;

/**
 * Where a type is written, by which the names in it are resolved.
 *
 * @internal
 */
final class Scope
{
    /** @param class-string|null $class for `self` and `static` */
    private function __construct(
        public readonly string $file,
        private readonly ?string $namespace,
        public readonly ?string $class,
        public readonly ?string $parent,
    ) {}

    /** @param \ReflectionClass<object> $class */
    public static function ofClass(\ReflectionClass $class): self
    {
        return new self((string) $class->getFileName(), $class->getNamespaceName(), $class->name, ($class->getParentClass() ?: null)?->name);
    }

    public static function ofFunction(\ReflectionFunctionAbstract $function): self
    {
        $class = $function->getClosureScopeClass() ?? ($function instanceof \ReflectionMethod ? $function->getDeclaringClass() : null);
        $file = (string) $function->getFileName();
        // A file that a method includes has the class of the method, but imports and a namespace of its own; so has a trait.
        $namespace = $class !== null && $class->getFileName() === $file ? $class->getNamespaceName() : null;

        return new self($file, $namespace, $class?->name, ($class?->getParentClass() ?: null)?->name);
    }

    /** The name of a closure tells its namespace in some versions of PHP only, so the file does. */
    public function namespace(): string
    {
        return $this->namespace ?? self::namespaceOf($this->file);
    }

    private static function namespaceOf(string $file): string
    {
        $part = [];

        return \is_file($file) && \preg_match('/^\s*namespace\s+([\w\\\\]+)\s*[;{]/m', (string) \file_get_contents($file), $part) === 1 ? $part[1] : '';
    }
}
