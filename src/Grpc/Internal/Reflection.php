<?php

declare(strict_types=1);

namespace Weft\Grpc\Internal;

use Weft\Grpc\Reflection\V1;
use Weft\Grpc\Reflection\V1alpha;
use Weft\Grpc\Status;

/**
 * Server reflection. The messages of both protocol versions differ only in their package.
 *
 * @internal
 */
final class Reflection
{
    private ?Symbols $symbols = null;

    /**
     * @param list<string> $services full names
     * @param list<class-string<\Weft\Protobuf\File>> $files
     * @param string $namespace of the version's messages
     */
    private function __construct(private readonly array $services, private readonly array $files, private readonly string $namespace)
    {
    }

    /**
     * @param list<object> $objects other served objects
     *
     * @return list<object> a service for each version of the protocol
     */
    public static function of(array $objects): array
    {
        $served = new Services($objects);
        $services = [...\array_keys($served->interfaces), V1\ServerReflection::SERVICE, V1alpha\ServerReflection::SERVICE];
        \sort($services);
        $files = [...$served->files(), V1\ReflectionFile::class, V1alpha\ReflectionFile::class];

        return [
            new ReflectionV1(new self($services, $files, 'Weft\Grpc\Reflection\V1')),
            new ReflectionV1alpha(new self($services, $files, 'Weft\Grpc\Reflection\V1alpha')),
        ];
    }

    /**
     * @template T of V1\ServerReflectionResponse|V1alpha\ServerReflectionResponse
     *
     * @param iterable<V1\ServerReflectionRequest|V1alpha\ServerReflectionRequest> $requests
     * @param class-string<T> $response
     *
     * @return \Generator<int, T>
     */
    public function answers(iterable $requests, string $response): \Generator
    {
        $symbols = $this->symbols ??= new Symbols($this->files);
        foreach ($requests as $request) {
            [$name, $answer] = $this->answer($request, $symbols);
            yield new $response(...['validHost' => $request->host, 'originalRequest' => $request, $name => $answer]);
        }
    }

    /** @return array{string, object} the property of the response, and its value */
    private function answer(V1\ServerReflectionRequest|V1alpha\ServerReflectionRequest $request, Symbols $symbols): array
    {
        return match ($request->messageRequestCase()) {
            'fileByFilename' => $this->files($symbols->file((string) $request->fileByFilename), "the file $request->fileByFilename"),
            'fileContainingSymbol' => $this->files($symbols->fileOf((string) $request->fileContainingSymbol), "the symbol $request->fileContainingSymbol"),
            'fileContainingExtension' => $this->extension($symbols, (string) $request->fileContainingExtension?->containingType, (int) $request->fileContainingExtension?->extensionNumber),
            'allExtensionNumbersOfType' => $this->numbers($symbols, (string) $request->allExtensionNumbersOfType),
            'listServices' => ['listServicesResponse', $this->message('ListServiceResponse', \array_map(fn(string $name): object => $this->message('ServiceResponse', $name), $this->services))],
            null => $this->error(Status::InvalidArgument, 'the request has no message_request'),
        };
    }

    /**
     * @param list<string> $descriptors
     *
     * @return array{string, object}
     */
    private function files(array $descriptors, string $what): array
    {
        return $descriptors === []
            ? $this->error(Status::NotFound, "$what is not known here")
            : ['fileDescriptorResponse', $this->message('FileDescriptorResponse', $descriptors)];
    }

    /** @return array{string, object} */
    private function extension(Symbols $symbols, string $type, int $number): array
    {
        return $this->files($symbols->fileOfExtension($type, $number), "the extension $number of $type");
    }

    /** @return array{string, object} */
    private function numbers(Symbols $symbols, string $type): array
    {
        return $symbols->fileOf($type) === []
            ? $this->error(Status::NotFound, "the type $type is not known here")
            : ['allExtensionNumbersResponse', $this->message('ExtensionNumberResponse', $type, $symbols->extensionsOf($type))];
    }

    /** @return array{string, object} */
    private function error(Status $status, string $message): array
    {
        return ['errorResponse', $this->message('ErrorResponse', $status->value, $message)];
    }

    private function message(string $name, mixed ...$fields): object
    {
        return new ("$this->namespace\\$name")(...$fields);
    }
}
