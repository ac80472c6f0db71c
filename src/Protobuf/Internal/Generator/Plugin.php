<?php

declare(strict_types=1);

namespace Weft\Protobuf\Internal\Generator;

use Weft\Protobuf\Codec;
use Weft\Protobuf\Compiler\CodeGeneratorRequest;
use Weft\Protobuf\Compiler\CodeGeneratorResponse;
use Weft\Protobuf\Compiler\CodeGeneratorResponse\Feature;
use Weft\Protobuf\Compiler\CodeGeneratorResponse\File;
use Weft\Protobuf\Descriptor\DescriptorProto;
use Weft\Protobuf\Descriptor\Edition;

/**
 * The protoc plugin: reads a serialized request and writes a serialized response.
 *
 * @internal
 */
final class Plugin
{
    /** @return string a serialized `CodeGeneratorResponse`, with what was wrong in its `error` */
    public static function run(string $request): string
    {
        $request = Codec::decode(CodeGeneratorRequest::class, $request);
        $response = new CodeGeneratorResponse(
            supportedFeatures: Feature::PROTO3_OPTIONAL->value | Feature::SUPPORTS_EDITIONS->value,
            minimumEdition: Edition::EDITION_PROTO2->value,
            maximumEdition: Edition::EDITION_2024->value,
        );
        try {
            $response->file = self::files($request);
        } catch (GenerationException $e) {
            $response->error = $e->getMessage();
        }

        return Codec::encode($response);
    }

    /** @return list<File> */
    private static function files(CodeGeneratorRequest $request): array
    {
        $root = self::root($request->parameter ?? '');
        $catalogue = new Catalogue($request->protoFile);
        $files = [];
        foreach ($request->fileToGenerate as $name) {
            foreach (self::texts($catalogue, $catalogue->file($name)) as [$code, $body]) {
                $path = $code->path($root);
                // The classes `Api\User` and `$root\Api\User` share a path.
                if (isset($files[\strtolower($path)])) {
                    throw new GenerationException("{$name}: two classes would both be written to {$path}; give the files php_namespace options below {$root}");
                }
                $files[\strtolower($path)] = new File(name: $path, content: $code->text($body));
            }
        }

        return \array_values($files);
    }

    /** @return iterable<array{Code, string}> */
    private static function texts(Catalogue $catalogue, SourceFile $file): iterable
    {
        foreach ($catalogue->typesOf($file) as $type) {
            $code = new Code($type->class, $file);
            $descriptor = $type->descriptor;
            yield [$code, $descriptor instanceof DescriptorProto
                ? MessageWriter::body($catalogue, $type, $descriptor, $code)
                : EnumWriter::body($type, $descriptor, $code)];
        }
        foreach ($file->descriptor->service as $index => $service) {
            $writer = new ServiceWriter($catalogue, $file, $service, $index);
            $code = new Code($catalogue->serviceClass($file, $service->name ?? ''), $file);
            yield [$code, $writer->interface($code)];
            $code = new Code($catalogue->serviceClass($file, "{$service->name}Client"), $file);
            yield [$code, $writer->client($code)];
        }
        $code = new Code($file->fileClass(), $file);
        yield [$code, FileWriter::body($catalogue, $file, $code)];
    }

    /** The one option there is: `psr4=Example\Api`, the namespace that the output directory stands for. */
    private static function root(string $parameter): string
    {
        $root = '';
        foreach (\array_filter(\explode(',', $parameter), static fn(string $part): bool => $part !== '') as $option) {
            $parts = \explode('=', $option, 2);
            $root = $parts[0] === 'psr4' ? \trim($parts[1] ?? '', '\\') : throw new GenerationException("unknown option \"{$option}\"; there is psr4=NAMESPACE");
        }

        return $root;
    }
}
