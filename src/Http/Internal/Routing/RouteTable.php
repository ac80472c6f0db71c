<?php

declare(strict_types=1);

namespace Weft\Http\Internal\Routing;

/**
 * Finds the handlers of a path: one array access for a path without parameters, one regular expression for all others.
 *
 * @internal
 */
final class RouteTable
{
    /** Separates expression and names in a key; occurs in neither. */
    private const BEFORE_NAMES = "\0";

    /** @var array<string, \Closure> of paths without parameters, by `HttpRequest::endpoint()` */
    public array $endpoints = [];
    /** @var array<string, array<string, \Closure>> the same by {@see EncodedPath}, then by method */
    private array $fixed = [];
    /** @var array<string, array{list<string>, array<string, \Closure>, string}> by expression and names: names, handlers by method, path */
    private array $named = [];
    /** All expressions as one; null until it is needed. */
    private ?string $expression = null;

    /** @param array<string, \Closure> $handlers by method; a method that has one already keeps it */
    public function add(PathPattern $pattern, array $handlers): void
    {
        if ($pattern->names === []) {
            $path = $pattern->template();
            $this->fixed[$path] = ($this->fixed[$path] ?? []) + $handlers;
            foreach ($this->fixed[$path] as $method => $handler) {
                $this->endpoints["$method $path"] = $handler;
            }

            return;
        }
        $key = $pattern->expression . self::BEFORE_NAMES . \implode(',', $pattern->names);
        $this->named[$key] ??= [$pattern->names, [], $pattern->path];
        $this->named[$key][1] += $handlers;
        $this->expression = null;
    }

    /** @return array{array<string, \Closure>, array<string, string>, string|null} handlers by method, what the names stand for, the route */
    public function find(string $path): array
    {
        $encoded = EncodedPath::of($path);
        if ($encoded !== $path && isset($this->fixed[$encoded])) {
            return [$this->fixed[$encoded], [], null];
        }
        $values = [];
        if ($this->named === [] || !self::matches($this->expression ??= $this->combined(), $path, $encoded, $values)) {
            return [[], [], null];
        }
        [$names, $handlers, $route] = $this->named[\array_keys($this->named)[(int) $values['MARK']]];
        unset($values['MARK']);

        return [$handlers, self::parameters($names, \array_slice($values, 1)), $route];
    }

    /**
     * Every handler of a path, if the first matching expression has none for the method.
     *
     * @return array<string, array{\Closure, array<string, string>, string|null}> by method: handler, what the names stand for, the route
     */
    public function findAll(string $path): array
    {
        $encoded = EncodedPath::of($path);
        $all = \array_map(static fn(\Closure $handler) => [$handler, [], null], $this->fixed[$encoded] ?? []);
        foreach ($this->named as $key => [$names, $handlers, $route]) {
            $expression = self::expressionOf($key);
            $values = [];
            if (self::matches("~^$expression$~D", $path, $encoded, $values)) {
                $parameters = self::parameters($names, \array_slice($values, 1));
                $all += \array_map(static fn(\Closure $handler) => [$handler, $parameters, $route], $handlers);
            }
        }

        return $all;
    }

    /**
     * The path as it was sent comes first: an expression may expect `|`. Texts expect it percent-encoded.
     *
     * @param array<string> $values
     */
    private static function matches(string $expression, string $path, string $encoded, array &$values): bool
    {
        return \preg_match($expression, $path, $values) === 1 || $encoded !== $path && \preg_match($expression, $encoded, $values) === 1;
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
}
