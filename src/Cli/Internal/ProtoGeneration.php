<?php

declare(strict_types=1);

namespace Weft\Cli\Internal;

use Weft\Protobuf\Codec;
use Weft\Protobuf\Compiler\CodeGeneratorRequest;
use Weft\Protobuf\Compiler\CodeGeneratorResponse;
use Weft\Protobuf\Descriptor\FileDescriptorProto;
use Weft\Protobuf\Descriptor\FileDescriptorSet;
use Weft\Protobuf\Internal\Generator\Plugin;
use Weft\Protobuf\Internal\Generator\SourceFile;

/**
 * Generates classes from .proto files that protoc parses. Imports are generated as well, except those that Weft ships: google/protobuf
 * and the directory `protos`, such as google/api/annotations.proto.
 *
 * @internal
 */
final class ProtoGeneration
{
    private const BUNDLED_PROTOS = __DIR__ . '/../../../protos';

    /** @param list<string> $paths */
    public function __construct(
        private readonly array $paths,
        private readonly string $out,
        private readonly string $psr4,
    ) {
    }

    /**
     * @param list<string> $files
     *
     * @return array{int, list<string>} the number of written classes, and warnings about them
     */
    public function run(array $files): array
    {
        $descriptors = $this->parse($files);
        $generate = \array_filter(
            $descriptors,
            static fn(FileDescriptorProto $file): bool => !self::isOwn($file) && !\str_starts_with($file->name ?? '', 'google/protobuf/'),
        );
        $request = new CodeGeneratorRequest(
            fileToGenerate: \array_map(static fn(FileDescriptorProto $file): string => $file->name ?? '', \array_values($generate)),
            parameter: $this->psr4 === '' ? '' : "psr4={$this->psr4}",
            protoFile: $descriptors,
        );
        $response = Codec::decode(CodeGeneratorResponse::class, Plugin::run(Codec::encode($request)));
        if ($response->error !== null) {
            throw new ProtoGenerationException($response->error);
        }
        foreach ($response->file as $file) {
            $this->write("{$this->out}/{$file->name}", $file->content ?? '');
        }

        return [\count($response->file), $this->outsiders($generate)];
    }

    /**
     * @param array<FileDescriptorProto> $files
     *
     * @return list<string> a warning for each file whose classes the autoloader will not find
     */
    private function outsiders(array $files): array
    {
        $root = \trim($this->psr4, '\\');
        $notes = [];
        foreach ($files as $descriptor) {
            $file = new SourceFile($descriptor);
            if ($root !== '' && !\str_starts_with("{$file->namespace}\\", "{$root}\\")) {
                $wanted = \strtr(SourceFile::qualified($root, $file->namespace), ['\\' => '\\\\']);
                $namespace = $file->namespace === '' ? 'no namespace' : $file->namespace;
                $notes[] = "The classes of {$file->name} are in {$namespace}, not in {$root}: with option php_namespace = \"{$wanted}\"; they would be";
            }
        }

        return $notes;
    }

    /**
     * @param list<string> $files
     *
     * @return list<FileDescriptorProto> with all they import, imports first
     */
    private function parse(array $files): array
    {
        $set = \tempnam(\sys_get_temp_dir(), 'weft-proto-');
        if ($set === false) {
            throw new ProtoGenerationException('cannot create a temporary file in ' . \sys_get_temp_dir());
        }
        try {
            $this->protoc([
                ...\array_map(static fn(string $path): string => "--proto_path={$path}", [...$this->paths, self::BUNDLED_PROTOS]),
                '--include_imports', '--include_source_info', "--descriptor_set_out={$set}", ...$files,
            ]);

            return Codec::decode(FileDescriptorSet::class, (string) \file_get_contents($set))->file;
        } finally {
            \unlink($set);
        }
    }

    /** Files of the same names in the user's directories take precedence. */
    private static function isOwn(FileDescriptorProto $file): bool
    {
        return \str_starts_with($file->options?->phpNamespace ?? '', 'Weft\Grpc\\') && \is_file(self::BUNDLED_PROTOS . "/{$file->name}");
    }

    /** @param list<string> $arguments */
    private function protoc(array $arguments): void
    {
        $protoc = \getenv('PROTOC') ?: 'protoc';
        $process = @\proc_open([$protoc, ...$arguments], [1 => ['redirect', 2], 2 => ['pipe', 'w']], $pipes);
        if ($process === false || !isset($pipes[2])) {
            throw self::notFound($protoc);
        }
        $said = \trim((string) \stream_get_contents($pipes[2]));
        $code = \proc_close($process);
        if ($code === 127) {
            throw self::notFound($protoc);
        }
        if ($code !== 0) {
            // Debian's protobuf-compiler does not contain them.
            $hint = \preg_match('~^google/protobuf/\w+\.proto: File not found~m', $said)
                ? "\nThe files of google/protobuf/ are part of protoc: install them (Debian: apt install libprotobuf-dev), or pass their directory with --proto-path"
                : '';

            throw new ProtoGenerationException($said . $hint);
        }
    }

    private static function notFound(string $protoc): ProtoGenerationException
    {
        return new ProtoGenerationException("{$protoc} was not found: install it (Debian: apt install protobuf-compiler libprotobuf-dev), or set PROTOC to its path");
    }

    private function write(string $path, string $content): void
    {
        $directory = \dirname($path);
        if (!\is_dir($directory) && !@\mkdir($directory, 0o777, true) && !\is_dir($directory)) {
            throw new ProtoGenerationException("the directory {$directory} cannot be made");
        }
        if (@\file_put_contents($path, $content) === false) {
            throw new ProtoGenerationException("{$path} cannot be written");
        }
    }
}
