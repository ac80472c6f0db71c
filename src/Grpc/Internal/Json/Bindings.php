<?php

declare(strict_types=1);

namespace Weft\Grpc\Internal\Json;

use Weft\Grpc\Api\HttpRule;
use Weft\Grpc\Internal\Method;
use Weft\Grpc\Internal\Services;
use Weft\Grpc\InvalidServiceError;
use Weft\Protobuf\Codec;
use Weft\Protobuf\Descriptor\FileDescriptorProto;
use Weft\Protobuf\Descriptor\MethodOptions;
use Weft\Protobuf\Message;
use Weft\Grpc\Api\HttpOptions;

/**
 * The `google.api.http` rules in the .proto files of some services.
 *
 * @internal
 */
final class Bindings
{
    /** @var list<Method> one method per rule */
    public readonly array $methods;
    /** @var list<array{string, string, int, bool}> for the extension: method of HTTP, path, index of the method, whether the server streams */
    public readonly array $rules;

    /** @throws InvalidServiceError a rule is malformed, or its method has messages that are not of `Weft\Protobuf\Message` */
    public function __construct(Services $services)
    {
        $files = $services->files();
        $messages = new Messages($files);
        $annotations = self::annotations($files);
        $methods = $rules = $headMethods = $headRules = [];
        foreach ($services->methods as $index => $method) {
            $rule = $annotations[$method->path] ?? null;
            foreach ($rule === null ? [] : [$rule, ...$rule->additionalBindings] as $one) {
                $binding = self::binding($one, $method, $messages);
                $methods[] = $bound = $method->boundTo($binding);
                $rules[] = [$binding->verb, $binding->path, $index, $method->serverStreams];
                if ($binding->verb === 'GET') {
                    $headMethods[] = $bound;
                    $headRules[] = ['HEAD', $binding->path, $index, $method->serverStreams];
                }
            }
        }
        // A path with GET also has HEAD (RFC 9110 §9.1); the HTTP server leaves the body out. The first rule for a path applies, so the
        // application's own HEAD comes first.
        $this->methods = [...$methods, ...$headMethods];
        $this->rules = [...$rules, ...$headRules];
    }

    private static function binding(HttpRule $rule, Method $method, Messages $messages): Binding
    {
        if (!\is_subclass_of($method->request, Message::class) || !\is_subclass_of($method->response, Message::class)) {
            throw new InvalidServiceError("$method->path cannot be called with JSON: $method->request is not a class that Weft has generated");
        }
        [$verb, $path] = match ($rule->patternCase()) {
            'get' => ['GET', $rule->get],
            'put' => ['PUT', $rule->put],
            'post' => ['POST', $rule->post],
            'delete' => ['DELETE', $rule->delete],
            'patch' => ['PATCH', $rule->patch],
            'custom' => [$rule->custom?->kind, $rule->custom?->path],
            default => throw new InvalidServiceError("google.api.http of $method->path has no path"),
        };
        $fields = (int) \preg_match_all('/\{([\w.]+)/', (string) $path, $found) > 0 ? $found[1] : [];
        if ($rule->body !== '' && $rule->body !== '*') {
            $fields[] = $rule->body;
        }
        foreach ($fields as $field) {
            $messages->path($method->request::typeName(), $field)
                ?? throw new InvalidServiceError("google.api.http of $method->path names the field \"$field\", which {$method->request::typeName()} does not have");
        }
        if ($rule->responseBody !== '' && $messages->path($method->response::typeName(), $rule->responseBody) === null) {
            throw new InvalidServiceError("google.api.http of $method->path names the field \"$rule->responseBody\", which {$method->response::typeName()} does not have");
        }

        return new Binding((string) $verb, (string) $path, $rule->body, $rule->responseBody, $method->request, $messages);
    }

    /**
     * @param list<class-string<\Weft\Protobuf\File>> $files
     *
     * @return array<string, HttpRule> by path of the method
     */
    private static function annotations(array $files): array
    {
        $rules = [];
        foreach ($files as $file) {
            $descriptor = Codec::decode(FileDescriptorProto::class, $file::descriptor());
            $prefix = ($descriptor->package ?? '') === '' ? '' : "$descriptor->package.";
            foreach ($descriptor->service as $service) {
                foreach ($service->method as $method) {
                    $options = Codec::decode(HttpOptions::class, Codec::encode($method->options ?? new MethodOptions()));
                    if ($options->http !== null) {
                        $rules["/$prefix$service->name/$method->name"] = $options->http;
                    }
                }
            }
        }

        return $rules;
    }
}
