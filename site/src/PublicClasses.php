<?php

declare(strict_types=1);

namespace Weft\Site;

/** The classes, interfaces and enums that users of the library see: outside of `Internal`, and not marked `@internal`. */
final class PublicClasses
{
    /**
     * @param list<\ReflectionClass<object>> $all sorted by namespace and name
     * @param list<string> $missing classes that extend a class which is not installed
     */
    private function __construct(public readonly array $all, public readonly array $missing) {}

    public static function of(string $sources): self
    {
        $all = [];
        $missing = [];
        foreach (new \RecursiveIteratorIterator(new \RecursiveDirectoryIterator($sources, \FilesystemIterator::SKIP_DOTS)) as $file) {
            $path = \substr($file->getPathname(), \strlen($sources) + 1, -4);
            $name = 'Weft\\' . \strtr($path, '/', '\\');
            // A file whose name begins with a small letter holds functions.
            if (!\ctype_upper(\basename($path)[0]) || \str_contains($name, '\\Internal\\')) {
                continue;
            }
            try {
                $class = new \ReflectionClass($name);
            } catch (\Throwable $failure) {
                $missing[] = "$name: {$failure->getMessage()}";
                continue;
            }
            if (!DocBlock::of($class->getDocComment())->isInternal()) {
                $all[$class->getName()] = $class;
            }
        }
        \uasort($all, static fn(\ReflectionClass $a, \ReflectionClass $b): int => [$a->getNamespaceName(), $a->getName()] <=> [$b->getNamespaceName(), $b->getName()]);
        \sort($missing);

        return new self(\array_values($all), $missing);
    }

    /** @return array<string, non-empty-list<\ReflectionClass<object>>> by namespace */
    public function byNamespace(): array
    {
        $found = [];
        foreach ($this->all as $class) {
            $found[$class->getNamespaceName()][] = $class;
        }
        \ksort($found);

        return $found;
    }

    /** @return list<\ReflectionClass<object>> */
    public function throwables(): array
    {
        return \array_values(\array_filter($this->all, static fn(\ReflectionClass $class): bool => $class->implementsInterface(\Throwable::class)));
    }

    /**
     * Classes whose constructor has optional parameters: options, limits and attributes.
     *
     * @return list<\ReflectionClass<object>>
     */
    public function withOptions(): array
    {
        return \array_values(\array_filter(
            $this->all,
            static fn(\ReflectionClass $class): bool => !$class->implementsInterface(\Throwable::class) && Signature::options($class) !== [],
        ));
    }
}
