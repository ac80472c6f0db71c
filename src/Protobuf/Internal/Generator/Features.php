<?php

declare(strict_types=1);

namespace Weft\Protobuf\Internal\Generator;

use Weft\Protobuf\Descriptor\Edition;
use Weft\Protobuf\Descriptor\FeatureSet;
use Weft\Protobuf\Descriptor\FeatureSet\EnumType;
use Weft\Protobuf\Descriptor\FeatureSet\FieldPresence;
use Weft\Protobuf\Descriptor\FileDescriptorProto;

/**
 * The differences between proto2, proto3 and the editions that affect PHP types.
 *
 * @internal
 */
final class Features
{
    private function __construct(
        public readonly bool $implicitPresence,
        public readonly bool $openEnums,
    ) {
    }

    public static function of(FileDescriptorProto $file): self
    {
        $proto3 = $file->syntax === 'proto3' || $file->edition === Edition::EDITION_PROTO3;
        $proto2 = \in_array($file->syntax ?? '', ['', 'proto2'], true) || $file->edition === Edition::EDITION_PROTO2;

        return (new self($proto3, !$proto2))->with($file->options?->features);
    }

    public function with(?FeatureSet $overrides): self
    {
        $presence = $overrides?->fieldPresence;
        $enums = $overrides?->enumType;

        return new self(
            match ($presence) {
                null, FieldPresence::FIELD_PRESENCE_UNKNOWN => $this->implicitPresence,
                default => $presence === FieldPresence::IMPLICIT,
            },
            match ($enums) {
                null, EnumType::ENUM_TYPE_UNKNOWN => $this->openEnums,
                default => $enums === EnumType::OPEN,
            },
        );
    }
}
