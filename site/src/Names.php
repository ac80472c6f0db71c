<?php

declare(strict_types=1);

namespace Weft\Site;

/** Resolves the class names of a file's PHPDoc, and turns `{@see …}` into links between the pages of the reference. */
final class Names
{
    /** @var array<string, array<string, string>> imports by file */
    private static array $imports = [];

    /** @param array<string, true> $public names of the classes that have a section */
    public function __construct(private readonly array $public) {}

    /** The page of a namespace: `bus-saga.md` for `Weft\Bus\Saga`. */
    public static function page(string $namespace): string
    {
        return \strtolower(\strtr(\substr($namespace, 5) ?: 'weft', '\\', '-')) . '.md';
    }

    /** `[PoolOptions](pool.md#PoolOptions)`, or just code for a class that has no section. */
    public function link(string $class, string $label = '', string $member = ''): string
    {
        $short = \substr((string) \strrchr("\\$class", '\\'), 1);
        $text = '`' . ($label ?: $short . ($member === '' ? '' : "::$member")) . '`';
        if (!isset($this->public[$class])) {
            return $text;
        }
        $method = \preg_match('/^\w+(?=\(\))/', $member, $found) === 1 && \method_exists($class, $found[0]) && self::isSection(new \ReflectionMethod($class, $found[0]), $class) ? ".$found[0]" : '';

        return "[$text](" . self::page(\substr($class, 0, -\strlen($short) - 1)) . "#$short$method)";
    }

    private static function isSection(\ReflectionMethod $method, string $class): bool
    {
        return $method->class === $class && !$method->isConstructor() && Signature::isShown($method);
    }

    /** The text of a comment as Markdown. */
    public function text(string $text, string $file, string $namespace, string $self = ''): string
    {
        $text = (string) \preg_replace('/^( *)```$(.*?)^( *)```$/ms', "$1```php$2$3```", $text);

        return (string) \preg_replace_callback(
            '/\{@(?:see|link)\s+([^\s}]+)\s*([^}]*)\}/',
            function (array $found) use ($file, $namespace, $self): string {
                [$name, $member] = \explode('::', $found[1], 2) + [1 => ''];
                if (\str_starts_with($found[1], 'http')) {
                    return "<$found[1]>";
                }
                if ($member === '' && \str_ends_with($name, '()')) {
                    return \method_exists($self, \substr($name, 0, -2)) ? $this->link($self, $name, $name) : "`$name`";
                }
                $class = $name === 'self' ? $self : self::resolve($name, $file, $namespace);

                return $this->link($class, \trim($found[2]), $member);
            },
            $text,
        );
    }

    /** The full name of a class as the file means it. */
    public static function resolve(string $name, string $file, string $namespace): string
    {
        if (\str_starts_with($name, '\\')) {
            return \substr($name, 1);
        }
        self::$imports[$file] ??= self::imports($file);
        $parts = \explode('\\', $name, 2);
        $first = self::$imports[$file][$parts[0]] ?? null;

        return $first === null ? "$namespace\\$name" : \implode('\\', [$first, ...\array_slice($parts, 1)]);
    }

    /** @return array<string, string> full names by alias */
    private static function imports(string $file): array
    {
        \preg_match_all('/^use ([\w\\\\]+)(?: as (\w+))?;$/m', (string) \file_get_contents($file), $found, \PREG_SET_ORDER);
        $imports = [];
        foreach ($found as $use) {
            $imports[$use[2] ?? \substr((string) \strrchr("\\$use[1]", '\\'), 1)] = $use[1];
        }

        return $imports;
    }
}
