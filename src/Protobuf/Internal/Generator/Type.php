<?php

declare(strict_types=1);

namespace Weft\Protobuf\Internal\Generator;

use Weft\Protobuf\Descriptor\DescriptorProto;
use Weft\Protobuf\Descriptor\EnumDescriptorProto;

/**
 * A message or an enum, and the class it becomes.
 *
 * @internal
 */
final class Type
{
    /**
     * @param string $name full name, without a leading dot
     * @param string $class without a leading backslash
     * @param list<int> $path where it stands in its file, for its comments
     */
    public function __construct(
        public readonly string $name,
        public readonly string $class,
        public readonly SourceFile $file,
        public readonly DescriptorProto|EnumDescriptorProto $descriptor,
        public readonly Features $features,
        public readonly array $path,
    ) {
    }

    public function isMapEntry(): bool
    {
        return $this->descriptor instanceof DescriptorProto && $this->descriptor->options?->mapEntry === true;
    }
}
