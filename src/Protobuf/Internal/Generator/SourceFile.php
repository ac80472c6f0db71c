<?php

declare(strict_types=1);

namespace Weft\Protobuf\Internal\Generator;

use Weft\Protobuf\Descriptor\FileDescriptorProto;
use Weft\Protobuf\Internal\Names;

/**
 * A .proto file: the namespace of its classes, and its comments.
 *
 * @internal
 */
final class SourceFile
{
    /** Classes of these come with Weft, beside those that google/protobuf may have of them. */
    private const BUNDLED = [
        'google/protobuf/descriptor.proto' => 'Weft\Protobuf\Descriptor',
        'google/protobuf/compiler/plugin.proto' => 'Weft\Protobuf\Compiler',
        'google/protobuf/' => 'Weft\Protobuf\WellKnown',
    ];

    public readonly string $name;
    public readonly string $package;
    public readonly string $namespace;
    public readonly string $prefix;
    /** @var array<string, string> */
    private readonly array $comments;

    public function __construct(public readonly FileDescriptorProto $descriptor)
    {
        $this->name = $descriptor->name ?? '';
        $this->package = $descriptor->package ?? '';
        $this->namespace = $this->own() ?? $this->chosenNamespace();
        $this->prefix = $this->own() === null ? $this->chosenPrefix() : '';
        $comments = [];
        foreach ($descriptor->sourceCodeInfo->location ?? [] as $location) {
            $comment = \trim($location->leadingComments ?? '') !== '' ? $location->leadingComments : $location->trailingComments;
            $comments[\implode(',', $location->path)] = self::tidy($comment ?? '');
        }
        $this->comments = $comments;
    }

    /** The namespace of the class that stands for the file itself. */
    public function fileNamespace(): string
    {
        $chosen = $this->checkedNamespace('php_metadata_namespace', $this->descriptor->options->phpMetadataNamespace ?? '');

        return $this->own() === null && $chosen !== '' ? $chosen : $this->namespace;
    }

    public function fileClass(): string
    {
        return self::qualified($this->fileNamespace(), Names::file($this->name));
    }

    /** @param list<int> $path */
    public function comment(array $path): string
    {
        return $this->comments[\implode(',', $path)] ?? '';
    }

    public static function qualified(string $namespace, string $name): string
    {
        return $namespace === '' ? $name : "{$namespace}\\{$name}";
    }

    private function chosenNamespace(): string
    {
        $chosen = $this->descriptor->options?->phpNamespace;
        if ($chosen === null) {
            return Names::namespace($this->package);
        }

        return $this->checkedNamespace('php_namespace', $chosen);
    }

    private function checkedNamespace(string $option, string $chosen): string
    {
        $chosen = \trim($chosen, '\\');
        if ($chosen !== '' && !\preg_match('/^[A-Za-z_]\w*(\\\\[A-Za-z_]\w*)*$/D', $chosen)) {
            throw new GenerationException("{$this->name}: the option {$option} = \"{$chosen}\" is not a PHP namespace");
        }

        return $chosen;
    }

    private function chosenPrefix(): string
    {
        $chosen = $this->descriptor->options->phpClassPrefix ?? '';
        if ($chosen !== '' && !\preg_match('/^[A-Za-z_]\w*$/D', $chosen)) {
            throw new GenerationException("{$this->name}: the option php_class_prefix = \"{$chosen}\" cannot begin the name of a PHP class");
        }

        return $chosen;
    }

    private function own(): ?string
    {
        if (!\in_array($this->package, ['google.protobuf', 'google.protobuf.compiler'], true)) {
            return null;
        }
        foreach (self::BUNDLED as $path => $namespace) {
            if ($this->name === $path || (\str_ends_with($path, '/') && \str_starts_with($this->name, $path))) {
                return $namespace;
            }
        }

        return null;
    }

    private static function tidy(string $comment): string
    {
        $lines = \array_map(
            static fn(string $line): string => \rtrim(\str_starts_with($line, ' ') ? \substr($line, 1) : $line),
            \explode("\n", \str_replace('*/', '* /', $comment)),
        );

        return \trim(\implode("\n", $lines), "\n");
    }
}
