<?php

declare(strict_types=1);

namespace Weft\Grpc\Internal;

use Weft\Protobuf\Codec;
use Weft\Protobuf\Descriptor\DescriptorProto;
use Weft\Protobuf\Descriptor\FieldDescriptorProto;
use Weft\Protobuf\Descriptor\FileDescriptorProto;
use Weft\Protobuf\File;
use Weft\Protobuf\FileSet;

/**
 * Finds the .proto file that declares a symbol.
 *
 * @internal
 */
final class Symbols
{
    /** @var array<string, class-string<File>> by name of the file */
    private array $files = [];
    /** @var array<string, string> from full names to the file's */
    private array $symbols = [];
    /** @var array<string, array<int, string>> from the full name of a type and an extension's number to the file's name */
    private array $extensions = [];

    /** @param list<class-string<File>> $files */
    public function __construct(array $files)
    {
        foreach ($files as $file) {
            $this->add($file);
        }
    }

    /** @return list<string> serialized descriptors of the file and then of its imports; empty if it is unknown */
    public function file(string $name): array
    {
        $file = $this->files[$name] ?? null;
        if ($file === null) {
            return [];
        }
        $descriptors = FileSet::descriptors($file);
        $own = $descriptors[$name];
        unset($descriptors[$name]);

        return [$own, ...\array_values($descriptors)];
    }

    /** @return list<string> as `file()` */
    public function fileOf(string $symbol): array
    {
        return $this->file($this->symbols[$symbol] ?? '');
    }

    /** @return list<string> as `file()` */
    public function fileOfExtension(string $type, int $number): array
    {
        return $this->file($this->extensions[$type][$number] ?? '');
    }

    /** @return list<int> */
    public function extensionsOf(string $type): array
    {
        return \array_keys($this->extensions[$type] ?? []);
    }

    /** @param class-string<File> $file */
    private function add(string $file): void
    {
        if (!\class_exists($file) || isset($this->files[$file::name()])) {
            return;
        }
        $this->files[$file::name()] = $file;
        foreach ($file::dependencies() as $dependency) {
            $this->add($dependency);
        }
        $this->index(Codec::decode(FileDescriptorProto::class, $file::descriptor()), $file::name());
    }

    private function index(FileDescriptorProto $descriptor, string $file): void
    {
        $prefix = $descriptor->package === null || $descriptor->package === '' ? '' : "$descriptor->package.";
        foreach ($descriptor->messageType as $message) {
            $this->indexMessage($message, $prefix, $file);
        }
        foreach ($descriptor->enumType as $enum) {
            $this->symbols[$prefix . (string) $enum->name] = $file;
        }
        foreach ($descriptor->service as $service) {
            $this->symbols[$prefix . (string) $service->name] = $file;
            foreach ($service->method as $method) {
                $this->symbols["$prefix$service->name.$method->name"] = $file;
            }
        }
        $this->indexExtensions($descriptor->extension, $prefix, $file);
    }

    private function indexMessage(DescriptorProto $message, string $prefix, string $file): void
    {
        $name = $prefix . (string) $message->name;
        $this->symbols[$name] = $file;
        foreach ($message->field as $field) {
            $this->symbols["$name.$field->name"] = $file;
        }
        foreach ($message->nestedType as $nested) {
            $this->indexMessage($nested, "$name.", $file);
        }
        foreach ($message->enumType as $enum) {
            $this->symbols["$name.$enum->name"] = $file;
        }
        $this->indexExtensions($message->extension, "$name.", $file);
    }

    /** @param list<FieldDescriptorProto> $extensions */
    private function indexExtensions(array $extensions, string $prefix, string $file): void
    {
        foreach ($extensions as $extension) {
            $this->symbols[$prefix . (string) $extension->name] = $file;
            $this->extensions[\ltrim((string) $extension->extendee, '.')][(int) $extension->number] = $file;
        }
    }
}
