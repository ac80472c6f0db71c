<?php

declare(strict_types=1);

namespace Weft\Protobuf\Internal\Generator;

use Weft\Protobuf\Descriptor\DescriptorProto;
use Weft\Protobuf\Descriptor\EnumDescriptorProto;
use Weft\Protobuf\Descriptor\FileDescriptorProto;
use Weft\Protobuf\Internal\Names;

/**
 * All files of a run and the classes they become. No two may become the same class.
 *
 * @internal
 */
final class Catalogue
{
    /** Messages whose class is not called like them. */
    private const RENAMED = ['google.protobuf.Empty' => 'EmptyMessage'];

    /** @var array<string, SourceFile> */
    private array $files = [];
    /** @var array<string, Type> by full name */
    private array $types = [];
    /** @var array<string, string> from a class in lower case to what becomes it */
    private array $claims = [];

    /** @param list<FileDescriptorProto> $files imports before the files that import them */
    public function __construct(array $files)
    {
        foreach ($files as $descriptor) {
            $file = new SourceFile($descriptor);
            $this->files[$file->name] = $file;
            $this->claim($file->fileClass(), $file, 'the file itself');
            $features = Features::of($descriptor);
            foreach ($descriptor->messageType as $i => $message) {
                $this->message($file, $file->package, $file->namespace, $message, $features, [4, $i]);
            }
            foreach ($descriptor->enumType as $i => $enum) {
                $this->enum($file, $file->package, $file->namespace, $enum, $features, [5, $i]);
            }
            foreach ($descriptor->service as $service) {
                $this->claim($this->serviceClass($file, $service->name ?? ''), $file, "the service {$service->name}");
                $this->claim($this->serviceClass($file, "{$service->name}Client"), $file, "the client of the service {$service->name}");
            }
        }
    }

    public function file(string $name): SourceFile
    {
        return $this->files[$name] ?? throw new GenerationException("{$name} is imported, but protoc did not hand it over");
    }

    /** @return list<Type> the messages and enums of a file */
    public function typesOf(SourceFile $file): array
    {
        return \array_values(\array_filter($this->types, static fn(Type $type): bool => $type->file === $file && !$type->isMapEntry()));
    }

    /** @param string $name as descriptors hold it, with a leading dot */
    public function type(?string $name, string $user): Type
    {
        $name = \ltrim($name ?? '', '.');

        return $this->types[$name] ?? throw new GenerationException("{$user} uses the type {$name}, which is not known");
    }

    public function serviceClass(SourceFile $file, string $name): string
    {
        return SourceFile::qualified($file->namespace, Names::type($name, $file->prefix));
    }

    /** @param list<int> $path */
    private function message(SourceFile $file, string $scope, string $namespace, DescriptorProto $message, Features $features, array $path): void
    {
        $features = $features->with($message->options?->features);
        $name = \ltrim("{$scope}.{$message->name}", '.');
        $class = SourceFile::qualified($namespace, self::RENAMED[$name] ?? Names::type($message->name ?? '', $file->prefix));
        $this->add(new Type($name, $class, $file, $message, $features, $path));
        foreach ($message->nestedType as $i => $nested) {
            $this->message($file, $name, $class, $nested, $features, [...$path, 3, $i]);
        }
        foreach ($message->enumType as $i => $enum) {
            $this->enum($file, $name, $class, $enum, $features, [...$path, 4, $i]);
        }
    }

    /** @param list<int> $path */
    private function enum(SourceFile $file, string $scope, string $namespace, EnumDescriptorProto $enum, Features $features, array $path): void
    {
        $name = \ltrim("{$scope}.{$enum->name}", '.');
        $class = SourceFile::qualified($namespace, Names::type($enum->name ?? '', $file->prefix));
        $this->add(new Type($name, $class, $file, $enum, $features->with($enum->options?->features), $path));
    }

    private function add(Type $type): void
    {
        $this->types[$type->name] = $type;
        if (!$type->isMapEntry()) {
            $this->claim($type->class, $type->file, $type->name);
        }
    }

    private function claim(string $class, SourceFile $file, string $symbol): void
    {
        $key = \strtolower($class);
        $claim = "{$symbol} of {$file->name}";
        if (isset($this->claims[$key])) {
            throw new GenerationException("{$file->name}: {$claim} and {$this->claims[$key]} would both become the class {$class}; rename one, or give the files different php_namespace options");
        }
        if (Names::isReserved((string) \substr((string) \strrchr("\\{$class}", '\\'), 1))) {
            throw new GenerationException("{$file->name}: {$claim} would become the class {$class}, which is a reserved word of PHP; rename it, or change the option php_class_prefix");
        }
        if (self::isOfPhp($class)) {
            throw new GenerationException("{$file->name}: {$claim} would become the class {$class}, which PHP has; give the file a package or the option php_namespace");
        }
        $this->claims[$key] = $claim;
    }

    private static function isOfPhp(string $class): bool
    {
        return (\class_exists($class, false) || \interface_exists($class, false)) && (new \ReflectionClass($class))->isInternal();
    }
}
