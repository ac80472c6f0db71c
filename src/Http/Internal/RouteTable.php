<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

/**
 * Finds the handlers of a path: one array access for a path without parameters, one regular expression for all others.
 *
 * @internal
 */
final class RouteTable
{
    /** `{name}` or `{name:expression}`; the expression may have braces of its own, one deep. */
    private const NAME = '/\{([A-Za-z_]\w*)(?::((?:[^{}]|\{[^{}]*\})+))?\}/';

    /** Separates expression and names in a key; occurs in neither. */
    private const BEFORE_NAMES = "\0";

    /** @var array<string, array<string, \Closure>> by path, then by method */
    public array $fixed = [];
    /** @var array<string, array{list<string>, array<string, \Closure>, string}> by expression and names: names, handlers by method, path */
    private array $named = [];
    /** @var array<string, array<string, true>> by expression, then by method, whatever the names */
    private array $taken = [];
    /** All expressions as one; null until it is needed. */
    private ?string $expression = null;

    public function add(Route $route, \Closure $handler): void
    {
        [$expression, $names] = self::compile($route->path);
        foreach ($route->methods as $method) {
            if ($names === []) {
                $taken = isset($this->fixed[$route->path][$method]);
                $this->fixed[$route->path][$method] ??= $handler;
            } else {
                $taken = isset($this->taken[$expression][$method]);
                $this->taken[$expression][$method] = true;
                $key = $expression . self::BEFORE_NAMES . \implode(',', $names);
                $this->named[$key] ??= [$names, [], $route->path];
                $this->named[$key][1][$method] ??= $handler;
            }
            if ($taken) {
                throw new \ValueError("$method $route->path has a handler already");
            }
        }
        $this->expression = null;
    }

    /** @return array{array<string, \Closure>, array<string, string>, string|null} handlers by method, what the names stand for, the route */
    public function find(string $path): array
    {
        if ($this->named === []) {
            return [[], [], null];
        }
        if (\preg_match($this->expression ??= $this->combined(), $path, $values) !== 1) {
            return [[], [], null];
        }
        [$names, $handlers, $route] = $this->named[\array_keys($this->named)[(int) $values['MARK']]];
        unset($values['MARK']);

        return [$handlers, self::parameters($names, \array_slice($values, 1)), $route];
    }

    /**
     * Every handler of a path, if the first matching expression has none for the method.
     *
     * @return array<string, array{\Closure, array<string, string>, string}> by method: handler, what the names stand for, the route
     */
    public function findAll(string $path): array
    {
        $all = \array_map(static fn(\Closure $handler) => [$handler, [], $path], $this->fixed[$path] ?? []);
        foreach ($this->named as $key => [$names, $handlers, $route]) {
            $expression = self::expressionOf($key);
            $values = [];
            if (\preg_match("~^$expression$~D", $path, $values) === 1) {
                $parameters = self::parameters($names, \array_slice($values, 1));
                $all += \array_map(static fn(\Closure $handler) => [$handler, $parameters, $route], $handlers);
            }
        }

        return $all;
    }

    private function combined(): string
    {
        $alternatives = [];
        foreach (\array_keys($this->named) as $index => $key) {
            $alternatives[] = self::expressionOf($key) . "(*MARK:$index)";
        }

        return '~^(?|' . \implode('|', $alternatives) . ')$~D';
    }

    private static function expressionOf(string $key): string
    {
        return (string) \strstr($key, self::BEFORE_NAMES, true);
    }

    /**
     * @param list<string> $names
     * @param array<string> $values
     *
     * @return array<string, string>
     */
    private static function parameters(array $names, array $values): array
    {
        return \array_combine($names, \array_map(\rawurldecode(...), \array_slice(\array_pad($values, \count($names), ''), 0, \count($names))));
    }

    /** @return array{string, list<string>} expression and names */
    private static function compile(string $path): array
    {
        $expression = '';
        $names = [];
        $end = 0;
        \preg_match_all(self::NAME, $path, $found, \PREG_SET_ORDER | \PREG_OFFSET_CAPTURE);
        /** @var array{array{string, int}, array{string, int}, 2?: array{string, int}} $match */
        foreach ($found as $match) {
            [$whole, $start] = $match[0];
            $names[] = $match[1][0];
            $expression .= \preg_quote(\substr($path, $end, $start - $end), '~') . '(' . self::group($match[2][0] ?? '[^/]+') . ')';
            $end = $start + \strlen($whole);
        }
        $expression .= \preg_quote(\substr($path, $end), '~');
        if (@\preg_match("~^$expression$~D", '') === false || \count(\array_unique($names)) !== \count($names)) {
            throw new \ValueError("The path \"$path\" is malformed: write {name} or {name:expression}, each name once");
        }

        return [$expression, $names];
    }

    /** Capturing groups of a constraint must not shift those of the parameters. */
    private static function group(string $constraint): string
    {
        return \str_replace('~', '\~', (string) \preg_replace('/(?<!\\\\)\((?!\?)/', '(?:', $constraint));
    }
}
