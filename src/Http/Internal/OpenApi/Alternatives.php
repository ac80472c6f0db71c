<?php

declare(strict_types=1);

namespace Weft\Http\Internal\OpenApi;

/**
 * One operation for several routes that differ only in the expressions of their path parameters, such as `/t/{id:\d+}` and
 * `/t/{id:[a-z]+}`: OpenAPI allows one operation per method and path template.
 *
 * @internal
 *
 * @psalm-type Parameter = array{name: string, in: string, required?: bool, schema: mixed}
 * @psalm-type Content = array{description?: string, required?: bool, content?: array<string, array{schema: mixed}>}
 * @psalm-type Operation = array{
 *     operationId?: string, summary?: string, description?: string, parameters?: list<Parameter>, requestBody?: Content,
 *     responses: array<array-key, Content>
 * }
 */
final class Alternatives
{
    /**
     * @param array<string, mixed> $first keeps its summary
     * @param array<string, mixed> $second
     *
     * @return array<string, mixed>
     */
    public static function merged(array $first, array $second): array
    {
        /** @var Operation $first */
        /** @var Operation $second */
        $text = self::text($second);
        $description = $first['description'] ?? '';
        if ($text !== '' && $text !== self::text($first) && !\str_contains($description, "Alternative: $text")) {
            $first['description'] = \ltrim("$description\n\nAlternative: $text");
        }
        $parameters = self::parameters($first['parameters'] ?? [], $second['parameters'] ?? []);
        if ($parameters !== []) {
            $first['parameters'] = $parameters;
        }
        $body = self::body($first['requestBody'] ?? null, $second['requestBody'] ?? null);
        if ($body !== null) {
            $first['requestBody'] = $body;
        }
        foreach ($second['responses'] as $status => $response) {
            $first['responses'][$status] = isset($first['responses'][$status]) ? self::content($first['responses'][$status], $response) : $response;
        }
        // The statuses in their order, then `default`.
        \uksort($first['responses'], static fn(int|string $one, int|string $other): int => [\is_string($one), $one] <=> [\is_string($other), $other]);

        return $first;
    }

    /** @param Operation $operation */
    private static function text(array $operation): string
    {
        return \trim(($operation['summary'] ?? '') . "\n\n" . ($operation['description'] ?? ''));
    }

    /**
     * @param list<Parameter> $first
     * @param list<Parameter> $second
     *
     * @return list<Parameter>
     */
    private static function parameters(array $first, array $second): array
    {
        $merged = [];
        foreach ([...$first, ...$second] as $parameter) {
            $key = "{$parameter['in']} {$parameter['name']}";
            $merged[$key] = isset($merged[$key]) ? ['schema' => self::schema($merged[$key]['schema'], $parameter['schema'])] + $merged[$key] : $parameter;
        }
        foreach ($merged as $key => $parameter) {
            // A parameter of the path is in both, and required.
            if (($parameter['required'] ?? false) && (!self::requires($first, $parameter) || !self::requires($second, $parameter))) {
                $merged[$key] = ['required' => false] + $parameter;
            }
        }

        return \array_values($merged);
    }

    /**
     * @param list<Parameter> $parameters
     * @param Parameter $wanted
     */
    private static function requires(array $parameters, array $wanted): bool
    {
        foreach ($parameters as $parameter) {
            if ($parameter['in'] === $wanted['in'] && $parameter['name'] === $wanted['name']) {
                return $parameter['required'] ?? false;
            }
        }

        return false;
    }

    /**
     * @param Content|null $first
     * @param Content|null $second
     *
     * @return Content|null
     */
    private static function body(?array $first, ?array $second): ?array
    {
        if ($first === null || $second === null) {
            $body = $first ?? $second;

            return $body === null ? null : ['required' => false] + $body;
        }

        return self::content($first, $second);
    }

    /**
     * @param Content $first a body or a response
     * @param Content $second
     *
     * @return Content
     */
    private static function content(array $first, array $second): array
    {
        foreach ($second['content'] ?? [] as $type => $media) {
            $first['content'][$type] = isset($first['content'][$type]) ? ['schema' => self::schema($first['content'][$type]['schema'], $media['schema'])] : $media;
        }

        return $first;
    }

    /** What either of them takes. */
    private static function schema(mixed $first, mixed $second): mixed
    {
        // Equal, not identical: an empty one is an stdClass.
        if ($first == $second) {
            return $first;
        }
        $schemas = \is_array($first) && \array_keys($first) === ['anyOf'] && \is_array($first['anyOf']) ? $first['anyOf'] : [$first];

        return ['anyOf' => \in_array($second, $schemas, false) ? $schemas : [...$schemas, $second]];
    }
}
