<?php

declare(strict_types=1);

namespace Weft\Http\Internal\Handlers;

use Weft\Internal\Codec\Enumeration;
use Weft\Internal\Codec\Instance;
use Weft\Internal\Codec\Map;
use Weft\Internal\Codec\MismatchException;
use Weft\Internal\Codec\Optional;
use Weft\Internal\Codec\Sequence;
use Weft\Internal\Codec\Type;

/**
 * What a client reads about a value that does not match its type: without the names of classes and enums, which are internal.
 *
 * @internal
 */
final class FaultDetail
{
    public static function of(MismatchException $mismatch, Type $type): string
    {
        $type = $type instanceof Optional ? $type->inner : $type;

        return match (true) {
            $type instanceof Enumeration => 'expected one of ' . \implode(', ', \array_map(static fn(\BackedEnum $case): string => (string) \json_encode($case->value), $type->enum::cases())),
            $type instanceof Instance => "expected object, found {$mismatch->found}",
            $type instanceof Sequence => "expected list, found {$mismatch->found}",
            $type instanceof Map => "expected object, found {$mismatch->found}",
            default => $mismatch->problem,
        };
    }
}
