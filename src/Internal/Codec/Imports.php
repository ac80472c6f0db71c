<?php

declare(strict_types=1);

namespace Weft\Internal\Codec;

/**
 * Resolves the class names of doc comments as PHP resolves those of code: by the file's use statements, then its namespace.
 *
 * @internal
 */
final class Imports
{
    private const BUILT_IN = ['string', 'int', 'float', 'bool', 'mixed', 'array', 'self', 'static', 'object', 'null', 'callable', 'iterable', 'resource'];

    /** @var array<string, array<string, string>> imports by file */
    private static array $byFile = [];

    /** @return string a fully qualified class name, or the name of a built-in type */
    public static function resolve(string $name, Scope $scope): string
    {
        if (\in_array(\strtolower($name), self::BUILT_IN, true) || \str_contains($name, '-')) {
            return $name;
        }
        if ($name[0] === '\\') {
            return \substr($name, 1);
        }
        $parts = \explode('\\', $name, 2);
        $rest = $parts[1] ?? null;
        $imported = self::of($scope->file)[\strtolower($parts[0])] ?? null;
        if ($imported !== null) {
            return $rest === null ? $imported : "{$imported}\\{$rest}";
        }

        return \ltrim($scope->namespace() . '\\' . $name, '\\');
    }

    /** @return array<string, string> class by lower-case alias */
    private static function of(string $file): array
    {
        /** @var array<string, string> */
        return self::$byFile[$file] ??= self::read($file);
    }

    private static function read(string $file): array
    {
        if (!\is_file($file)) {
            return [];
        }
        // Braces contain no imports except the members of a group; neither the extension tokenizer nor a bracketed namespace is assumed.
        $code = (string) \preg_replace(['/\'(?:\\\\.|[^\'\\\\])*+\'|"(?:\\\\.|[^"\\\\])*+"/s', '/(?<!\\\\)(\{(?:[^{}]++|(?1))*+\})/'], '', \php_strip_whitespace($file));
        $imports = $found = [];
        \preg_match_all('/\buse\s+([^;()]+);/', $code, $found);
        foreach ($found[1] as $statement) {
            $imports += self::parse((string) \preg_replace(['/\s+/', '/\s*([\\\\,{}])\s*/', '/ $/'], [' ', '$1', ''], $statement));
        }

        return $imports;
    }

    /** @return array<string, string> */
    private static function parse(string $statement): array
    {
        if (\preg_match('/^(function|const) /', $statement) === 1) {
            return [];
        }
        [$prefix, $members] = \preg_match('/^(.*\\\\)\{(.*)\}$/', $statement, $part) === 1 ? [$part[1], $part[2]] : ['', $statement];
        $imports = [];
        foreach (\array_filter(\explode(',', $members)) as $member) {
            $parts = \explode(' as ', $member);
            $class = \ltrim($prefix . $parts[0], '\\');
            $imports[\strtolower($parts[1] ?? \basename(\strtr($class, '\\', '/')))] = $class;
        }

        return $imports;
    }
}
