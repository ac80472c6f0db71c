<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Weft\Http\NotFoundException;
use Weft\Http\Request;
use Weft\Http\WebSocket;

/**
 * Calls a handler with the arguments that its parameters ask for.
 *
 * @internal
 */
final class HandlerCall
{
    /** @return \Closure(Request): mixed */
    public static function of(\Closure $handler, string $path = ''): \Closure
    {
        $parameters = (new \ReflectionFunction($handler))->getParameters();
        if (\count($parameters) <= 1 && ($parameters === [] || self::isRequest($parameters[0]))) {
            return $handler;
        }
        $arguments = \array_map(static fn(\ReflectionParameter $parameter) => self::argument($parameter, $path), $parameters);

        return static function (Request $request) use ($handler, $arguments): mixed {
            $values = [];
            foreach ($arguments as $argument) {
                $values[] = $argument($request);
            }

            return $handler(...$values);
        };
    }

    /** @return \Closure(Request, WebSocket): mixed */
    public static function withSocket(\Closure $handler, string $path): \Closure
    {
        $arguments = [];
        foreach ((new \ReflectionFunction($handler))->getParameters() as $parameter) {
            $isSocket = (string) $parameter->getType() === WebSocket::class || $parameter->getType() === null && $parameter->getPosition() === 0;
            $arguments[] = $isSocket ? null : self::argument($parameter, $path);
        }

        return static function (Request $request, WebSocket $socket) use ($handler, $arguments): void {
            $handler(...\array_map(static fn(?\Closure $argument) => $argument === null ? $socket : $argument($request), $arguments));
        };
    }

    /** @return \Closure(Request): mixed */
    private static function argument(\ReflectionParameter $parameter, string $path): \Closure
    {
        if (self::isRequest($parameter)) {
            return static fn(Request $request): Request => $request;
        }
        $name = $parameter->getName();
        if (\preg_match('/\{' . \preg_quote($name, '/') . '[:}]/', $path) !== 1) {
            throw new \ValueError("The handler of \"$path\" has the parameter \$$name, but the path has no {{$name}}, and only the Request comes by its type");
        }
        $type = (string) ($parameter->getType() ?? 'string');

        return match (\ltrim($type, '?')) {
            'int' => static fn(Request $request): int => (int) self::number($request, $name, \FILTER_VALIDATE_INT),
            'float' => static fn(Request $request): float => self::number($request, $name, \FILTER_VALIDATE_FLOAT),
            'string', 'mixed' => static fn(Request $request): string => $request->parameters[$name],
            default => throw new \ValueError("The handler of \"$path\" wants \$$name to be $type: a name in a path is a string, an int or a float"),
        };
    }

    private static function number(Request $request, string $name, int $filter): int|float
    {
        $number = \filter_var($request->parameters[$name], $filter);

        return $number === false ? throw new NotFoundException() : $number;
    }

    private static function isRequest(\ReflectionParameter $parameter): bool
    {
        $type = $parameter->getType();

        return $type instanceof \ReflectionNamedType && $type->getName() === Request::class
            || $type === null && $parameter->getPosition() === 0 && $parameter->getName() === 'request';
    }
}
