<?php

declare(strict_types=1);

namespace Weft\Grpc\Internal;

use Weft\Grpc\Call;
use Weft\Grpc\Reflection\V1alpha\ServerReflection;
use Weft\Grpc\Reflection\V1alpha\ServerReflectionResponse;

/** @internal */
final class ReflectionV1alpha implements ServerReflection
{
    public function __construct(private readonly Reflection $reflection)
    {
    }

    public function serverReflectionInfo(iterable $requests, Call $call): iterable
    {
        return $this->reflection->answers($requests, ServerReflectionResponse::class);
    }
}
