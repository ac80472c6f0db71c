<?php

declare(strict_types=1);

namespace Weft\Http\Internal\OpenApi;

/**
 * One operation for several routes that differ only in the expressions of their path parameters, such as `/t/{id:\d+}` and
 * `/t/{id:[a-z]+}`: OpenAPI allows one operation per method and path template.
 *
 * @internal
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
        $merged = $first;
        $text = \implode("\n\n", \array_filter([$second['summary'] ?? '', $second['description'] ?? '']));
        $own = \implode("\n\n", \array_filter([$first['summary'] ?? '', $first['description'] ?? '']));
        if ($text !== '' && $text !== $own && !\str_contains($first['description'] ?? '', "Alternative: $text")) {
            $merged['description'] = \implode("\n\n", \array_filter([$first['description'] ?? '', "Alternative: $text"]));
        }
        $parameters = self::parameters($first['parameters'] ?? [], $second['parameters'] ?? []);
        $body = self::body($first['requestBody'] ?? null, $second['requestBody'] ?? null);
        $responses = $first['responses'];
        foreach ($second['responses'] as $status => $response) {
            $responses[$status] = isset($responses[$status]) ? self::content($responses[$status], $response) : $response;
        }
        // The statuses in their order, then `default`.
        \uksort($responses, static fn(int|string $one, int|string $other): int => [\is_string($one), $one] <=> [\is_string($other), $other]);

        // In the order of a single operation.
        return \array_diff_key($merged, ['parameters' => 0, 'requestBody' => 0, 'responses' => 0])
            + ($parameters === [] ? [] : ['parameters' => $parameters])
            + ($body === null ? [] : ['requestBody' => $body])
            + ['responses' => $responses];
    }

    /**
     * @param list<array<string, mixed>> $first
     * @param list<array<string, mixed>> $second
     *
     * @return list<array<string, mixed>>
     */
    private static function parameters(array $first, array $second): array
    {
        $merged = [];
        foreach ([...$first, ...$second] as $parameter) {
            $key = "{$parameter['in']} {$parameter['name']}";
            if (isset($merged[$key])) {
                $merged[$key]['schema'] = self::schema($merged[$key]['schema'], $parameter['schema']);
            } else {
                $merged[$key] = $parameter;
            }
        }
        foreach ($merged as $key => $parameter) {
            // A parameter of the path is in both, and required.
            if (!self::requires($first, $parameter) || !self::requires($second, $parameter)) {
                unset($merged[$key]['required']);
            }
        }

        return \array_values($merged);
    }

    /**
     * @param list<array<string, mixed>> $parameters
     * @param array<string, mixed> $wanted
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
     * @param array<string, mixed>|null $first
     * @param array<string, mixed>|null $second
     *
     * @return array<string, mixed>|null
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
     * @param array<string, mixed> $first a body or a response
     * @param array<string, mixed> $second
     *
     * @return array<string, mixed>
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
        $schemas = \is_array($first) && \array_keys($first) === ['anyOf'] ? $first['anyOf'] : [$first];

        return ['anyOf' => \in_array($second, $schemas, false) ? $schemas : [...$schemas, $second]];
    }
}
