<?php

declare(strict_types=1);

namespace Weft\Protobuf\Internal;

/**
 * From the names of a .proto file to those of PHP.
 *
 * @internal
 */
final class Names
{
    /** Words that cannot name a class, in lower case. */
    private const RESERVED = [
        'abstract', 'and', 'array', 'as', 'bool', 'break', 'callable', 'case', 'catch', 'class', 'clone', 'const', 'continue',
        'declare', 'default', 'die', 'do', 'echo', 'else', 'elseif', 'empty', 'enddeclare', 'endfor', 'endforeach', 'endif',
        'endswitch', 'endwhile', 'enum', 'eval', 'exit', 'extends', 'false', 'final', 'finally', 'float', 'fn', 'for', 'foreach',
        'function', 'global', 'goto', 'if', 'implements', 'include', 'include_once', 'instanceof', 'insteadof', 'int',
        'interface', 'isset', 'iterable', 'list', 'match', 'mixed', 'namespace', 'never', 'new', 'null', 'object', 'or',
        'parent', 'print', 'private', 'protected', 'public', 'readonly', 'require', 'require_once', 'return', 'self', 'static',
        'string', 'switch', 'throw', 'trait', 'true', 'try', 'unset', 'use', 'var', 'void', 'while', 'xor', 'yield',
        '__class__', '__dir__', '__file__', '__function__', '__halt_compiler', '__line__', '__method__', '__namespace__',
        '__trait__',
    ];

    /** `email_address` is `emailAddress`, as in JSON. */
    public static function property(string $field): string
    {
        $name = (string) \preg_replace_callback('/_+(.?)/', static fn(array $m): string => \strtoupper($m[1]), $field);

        return match (true) {
            $name === 'this', $name === 'GLOBALS', $name === 'unknownFields' => "{$name}_",
            $name === '' || \strspn($name, '0123456789', 0, 1) === 1 => "_{$name}",
            default => $name,
        };
    }

    /** @param string $prefix comes before a word that PHP reserves, if there is no other prefix */
    public static function type(string $name, string $prefix = ''): string
    {
        $reserved = $prefix === '' && self::isReserved($name);

        return ($reserved ? 'PB' : $prefix) . $name;
    }

    /** Whether it cannot name a class. */
    public static function isReserved(string $name): bool
    {
        return \in_array(\strtolower($name), self::RESERVED, true);
    }

    /** `GetUser` is `getUser`. Methods may be called like words that PHP reserves. */
    public static function method(string $rpc): string
    {
        $name = \lcfirst(self::property($rpc));

        return \in_array(\strtolower($name), ['__construct', '__destruct'], true) ? "{$name}_" : $name;
    }

    /** `example.api.v1` is `Example\Api\V1`. */
    public static function namespace(string $package): string
    {
        $parts = $package === '' ? [] : \explode('.', $package);

        return \implode('\\', \array_map(
            static fn(string $part): string => \strtolower($pascal = self::pascal($part)) === 'namespace' ? 'PB' . $pascal : $pascal,
            $parts,
        ));
    }

    /** `api/user_accounts.proto` is `UserAccountsFile`. */
    public static function file(string $path): string
    {
        return self::pascal((string) \preg_replace('/[^A-Za-z0-9]+/', '_', \basename($path, '.proto'))) . 'File';
    }

    /**
     * @param list<string> $values
     *
     * @return array<string, string> from the names of an enum's values to those of its cases: without the prefix they share
     */
    public static function cases(string $enum, array $values): array
    {
        $prefix = \strtoupper((string) \preg_replace('/(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/', '_', $enum)) . '_';
        foreach ($values as $value) {
            if (!\str_starts_with($value, $prefix) || !\preg_match('/^[A-Za-z_]/', \substr($value, \strlen($prefix)))) {
                $prefix = '';
                break;
            }
        }
        $cases = [];
        foreach ($values as $value) {
            $case = \substr($value, \strlen($prefix));
            $cases[$value] = \strtolower($case) === 'class' ? "{$case}_" : $case;
        }

        return $cases;
    }

    private static function pascal(string $name): string
    {
        return \ucfirst(self::property($name));
    }
}
