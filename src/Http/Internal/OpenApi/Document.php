<?php

declare(strict_types=1);

namespace Weft\Http\Internal\OpenApi;

use Weft\Http\Internal\ErrorPage;
use Weft\Http\Internal\Handlers\BodyArgument;
use Weft\Http\Internal\Handlers\CloudEventArgument;
use Weft\Http\Internal\Handlers\HandlerPlan;
use Weft\Http\Internal\Handlers\HeaderArgument;
use Weft\Http\Internal\Handlers\PathArgument;
use Weft\Http\Internal\Handlers\QueryArgument;
use Weft\Http\Internal\Handlers\QueryObjectArgument;
use Weft\Http\Internal\Routing\PathPattern;
use Weft\Http\Internal\Routing\Route;
use Weft\Http\OpenApi;
use Weft\Http\Problem;
use Weft\Internal\Codec\Optional;
use Weft\Internal\Codec\Sequence;
use Weft\Internal\Codec\Type;
use Weft\Validation\Internal\SchemaKeywords;

/**
 * The OpenAPI 3.1 document of routes.
 *
 * @internal
 */
final class Document
{
    /** Methods that OpenAPI has operations for. */
    private const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'];
    private const PROBLEM = [
        'type' => 'object',
        'description' => 'Problem details (RFC 9457)',
        'properties' => [
            'type' => ['type' => 'string', 'format' => 'uri-reference', 'default' => 'about:blank'],
            'title' => ['type' => 'string'],
            'status' => ['type' => 'integer', 'minimum' => 400, 'maximum' => 599],
            'detail' => ['type' => 'string'],
            'errors' => ['type' => 'array', 'items' => ['$ref' => '#/components/schemas/Fault']],
        ],
        'required' => ['type', 'title', 'status'],
    ];
    /** The required attributes of the JSON event format. Binary mode has no body of its own and is not described. */
    private const CLOUD_EVENT = [
        'type' => 'object',
        'properties' => ['specversion' => ['const' => '1.0'], 'id' => ['type' => 'string'], 'source' => ['type' => 'string', 'format' => 'uri-reference'], 'type' => ['type' => 'string']],
        'required' => ['specversion', 'id', 'source', 'type'],
    ];
    private const FAULT_SCHEMA = [
        'type' => 'object',
        'description' => 'What is wrong with one value of a request',
        'properties' => [
            'in' => ['type' => 'string', 'enum' => ['body', 'query', 'header']],
            'pointer' => ['type' => 'string', 'description' => 'JSON pointer of the value in the body, as a URI fragment (RFC 6901)'],
            'name' => ['type' => 'string', 'description' => 'Name of the query parameter or header field'],
            'detail' => ['type' => 'string'],
        ],
        'required' => ['in', 'detail'],
    ];

    private readonly Schemas $schemas;
    /** @var array<string, true> */
    private array $operationIds = [];

    /** @param list<Route> $routes */
    private function __construct(array $routes)
    {
        $this->schemas = new Schemas();
        foreach ($routes as $route) {
            $plan = $route->plan;
            foreach ($plan->arguments as $index => $argument) {
                if ($argument instanceof BodyArgument) {
                    $this->schemas->register($argument->type, true, self::groups($plan, $index));
                }
            }
            $plan->result->type === null || $this->schemas->register($plan->result->type, false);
        }
        $this->schemas->components = ['Problem' => self::PROBLEM, 'Fault' => self::FAULT_SCHEMA];
    }

    /**
     * @param list<Route> $routes
     *
     * @return string JSON
     */
    public static function json(OpenApi $info, array $routes): string
    {
        $flags = \JSON_THROW_ON_ERROR | \JSON_UNESCAPED_SLASHES | \JSON_UNESCAPED_UNICODE | \JSON_PRETTY_PRINT | \JSON_PRESERVE_ZERO_FRACTION;

        return \json_encode(self::of($info, $routes), $flags) . "\n";
    }

    /**
     * @param list<Route> $routes
     *
     * @return array<string, mixed>
     */
    private static function of(OpenApi $info, array $routes): array
    {
        $routes = \array_values(\array_filter($routes, static fn(Route $route): bool => $route->isDocumented));
        $document = new self($routes);
        $paths = $patterns = [];
        foreach ($routes as $route) {
            foreach ($route->methods as $method) {
                $key = \strtolower($method);
                if (\in_array($key, self::METHODS, true)) {
                    // Templates that differ only in the names of their parameters are the same path (OpenAPI 3.1 §4.8.8.1): it has the names of the first.
                    $pattern = $patterns[$route->pattern->unnamed()] ??= $route->pattern;
                    $template = $pattern->template();
                    $operation = $document->operation($route, $method, \array_combine($route->pattern->names, $pattern->names));
                    $paths[$template][$key] = isset($paths[$template][$key])
                        ? Alternatives::merged($paths[$template][$key], $operation)
                        : ['operationId' => $document->operationId($route, $method)] + $operation;
                }
            }
        }
        \ksort($document->schemas->components);

        return [
            'openapi' => '3.1.0',
            'info' => ['title' => $info->title, 'version' => $info->version] + ($info->description === '' ? [] : ['description' => $info->description]),
        ]
            + ($info->servers === [] ? [] : ['servers' => \array_map(static fn(string $url): array => ['url' => $url], $info->servers)])
            + ['paths' => $paths ?: new \stdClass(), 'components' => ['schemas' => $document->schemas->components]];
    }

    /**
     * @param array<string, string> $names in the document by names of path parameters
     *
     * @return array<string, mixed>
     */
    private function operation(Route $route, string $method, array $names): array
    {
        $function = new \ReflectionFunction($route->plan->handler);
        $comment = new DocComment($function->getDocComment());
        $parameters = $this->parameters($route, $names, $function->getParameters(), $comment);
        $hasBody = Route::hasBody($method);
        $body = $hasBody ? $this->body($route->plan, $function->getParameters(), $comment) : null;

        return \array_filter(['summary' => $comment->summary(), 'description' => $comment->description()])
            + ($parameters === [] ? [] : ['parameters' => $parameters])
            + ($body === null ? [] : ['requestBody' => $body])
            + ['responses' => $this->responses($route->plan, $hasBody)];
    }

    /** The name of the route, or one made of method and path: `getPeopleById`. */
    private function operationId(Route $route, string $method): string
    {
        $id = $route->name !== null && \count($route->methods) === 1
            ? $route->name
            : \strtolower($method) . \str_replace(' ', '', \ucwords((string) \preg_replace(['/\{/', '/[^A-Za-z0-9]+/'], [' by ', ' '], $route->pattern->template())));
        for ($unique = $id, $number = 2; isset($this->operationIds[$unique]); $number++) {
            $unique = $id . $number;
        }
        $this->operationIds[$unique] = true;

        return $unique;
    }

    /** @return list<string>|null groups of constraints by which an argument is validated; null if it is not */
    private static function groups(HandlerPlan $plan, int $index): ?array
    {
        $rule = $plan->validations[$index] ?? null;
        if ($rule === null) {
            return null;
        }
        $groups = $rule->groups === [] ? [SchemaKeywords::DEFAULT_GROUP] : \array_values(\array_unique($rule->groups));
        \sort($groups);

        return $groups;
    }

    /**
     * @param array<string, string> $names in the document by names of path parameters
     * @param array<\ReflectionParameter> $reflections of the handler
     *
     * @return list<array<string, mixed>>
     */
    private function parameters(Route $route, array $names, array $reflections, DocComment $comment): array
    {
        $path = [];
        foreach ($route->pattern->constraints() as $name => $constraint) {
            $expression = PathPattern::isSegment($constraint) ? null : SchemaKeywords::expression($constraint);
            $pattern = $expression === null ? [] : ['pattern' => "^(?:$expression)$"];
            $path[$name] = ['name' => $names[$name], 'in' => 'path', 'required' => true, 'schema' => ['type' => 'string'] + $pattern];
        }
        $others = [];
        foreach ($route->plan->arguments as $index => $argument) {
            $description = $comment->parameter($reflections[$index]->name);
            $described = $description === '' ? [] : ['description' => $description];
            if ($argument instanceof PathArgument) {
                $type = $this->schemas->of($argument->type, true);
                $path[$argument->name] = $described + ['schema' => ($type['type'] ?? 'string') === 'string' && !isset($type['$ref']) ? $path[$argument->name]['schema'] : $type] + $path[$argument->name];
            } elseif ($argument instanceof QueryArgument) {
                $others[] = $this->parameter('query', $argument->name, $argument->type, $argument->isRequired, $argument->default) + $described;
            } elseif ($argument instanceof HeaderArgument) {
                $others[] = $this->parameter('header', $argument->name, $argument->type, $argument->isRequired, $argument->default) + $described;
            } elseif ($argument instanceof QueryObjectArgument) {
                \array_push($others, ...$this->queryObject($argument, self::groups($route->plan, $index)));
            }
        }

        return [...\array_values($path), ...$others];
    }

    /**
     * @param list<string>|null $groups of constraints by which it is validated; null if it is not
     *
     * @return list<array<string, mixed>>
     */
    private function queryObject(QueryObjectArgument $argument, ?array $groups): array
    {
        $parameters = [];
        $class = $argument->class->class->name;
        foreach ($argument->fields as $field) {
            $default = $field->optional && $field->default !== null ? ($field->default)() : null;
            $isRequired = !$field->optional && !$field->type instanceof Optional;
            $type = self::withoutNull($field->type);
            $schema = $this->schemas->of($type, true);
            $schema = $groups === null ? $schema : SchemaKeywords::added($schema, $class, $field->name, $type, $groups);
            $parameters[] = $this->parameter('query', $field->name, $type, $isRequired, $default, $schema) + Schemas::description($class, $field->name);
        }

        return $parameters;
    }

    /** Text has no null: a missing parameter is one. */
    private static function withoutNull(Type $type): Type
    {
        return $type instanceof Optional ? $type->inner : $type;
    }

    /**
     * @param array<string, mixed>|null $schema of the type without null, with its constraints
     *
     * @return array<string, mixed>
     */
    private function parameter(string $in, string $name, Type $type, bool $isRequired, mixed $default, ?array $schema = null): array
    {
        $type = self::withoutNull($type);
        $schema ??= $this->schemas->of($type, true);
        $schema += $default === null ? [] : Schemas::default($type, $default);

        return ['name' => $name, 'in' => $in] + ($isRequired ? ['required' => true] : []) + ['schema' => $schema] + ($type instanceof Sequence ? ['style' => 'form', 'explode' => true] : []);
    }

    /**
     * @param array<\ReflectionParameter> $reflections of the handler
     *
     * @return array<string, mixed>|null
     */
    private function body(HandlerPlan $plan, array $reflections, DocComment $comment): ?array
    {
        $argument = $plan->body();
        if ($argument === null) {
            return null;
        }
        $index = (int) \array_search($argument, $plan->arguments, true);
        $description = $comment->parameter($reflections[$index]->name);

        return ($description === '' ? [] : ['description' => $description])
            + ['required' => $argument->isRequired(), 'content' => $argument instanceof BodyArgument
                ? ['application/json' => ['schema' => $this->schemas->of($argument->type, true, self::groups($plan, $index)) ?: new \stdClass()]]
                : ['application/cloudevents+json' => ['schema' => self::CLOUD_EVENT]]];
    }

    /** @return array<array-key, mixed> */
    private function responses(HandlerPlan $plan, bool $hasBody): array
    {
        $result = $plan->result;
        $status = $result->isNothing && $result->status === 200 ? 204 : $result->status;
        $type = $result->type instanceof Optional ? $result->type->inner : $result->type;
        $responses = [$status => ['description' => ErrorPage::reason($status) ?: 'Success']];
        if ($result->isData) {
            $responses[$status]['content'] = ['application/json' => ['schema' => ($type === null ? [] : $this->schemas->of($type, false)) ?: new \stdClass()]];
        }
        if ($result->type instanceof Optional) {
            $responses[204] = ['description' => ErrorPage::reason(204)];
        }
        foreach ($plan->isTyped ? self::failures($plan, $hasBody) : [] as $failure) {
            $responses[$failure] = self::problem(ErrorPage::reason($failure));
        }
        if ($plan->isTyped) {
            $responses['default'] = self::problem('Failure');
        }

        return $responses;
    }

    /** @return list<int> */
    private static function failures(HandlerPlan $plan, bool $hasBody): array
    {
        $failures = $plan->validations === [] ? [] : [422];
        foreach ($plan->arguments as $argument) {
            $failures = [...$failures, ...match (true) {
                $argument instanceof BodyArgument => $hasBody ? [400, 415, 422] : [],
                $argument instanceof CloudEventArgument => [400, 415],
                $argument instanceof QueryArgument, $argument instanceof QueryObjectArgument, $argument instanceof HeaderArgument => [400],
                $argument instanceof PathArgument => [404],
                default => [],
            }];
        }
        \sort($failures);

        return \array_values(\array_unique($failures));
    }

    /** @return array<string, mixed> */
    private static function problem(string $description): array
    {
        return ['description' => $description, 'content' => [Problem::MEDIA_TYPE => ['schema' => ['$ref' => '#/components/schemas/Problem']]]];
    }
}
