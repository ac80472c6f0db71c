<?php

declare(strict_types=1);

namespace Weft\Http\Internal\Handlers;

use Weft\Http\Response;
use Weft\Internal\Codec\ClassCodec;
use Weft\Internal\Codec\Type;

/**
 * Makes the response of what a handler returns.
 *
 * @internal
 */
final class ReturnValue
{
    /**
     * @param ClassCodec|null $class of the objects that the handler declares to return
     * @param Type|null $type what it declares, for the description of the route; null where it declares nothing or a Response
     * @param bool $isNothing it declares to return nothing
     * @param bool $isData it declares to return something that becomes JSON
     */
    public function __construct(
        public readonly int $status = 200,
        private readonly ?ClassCodec $class = null,
        public readonly ?Type $type = null,
        public readonly bool $isNothing = false,
        public readonly bool $isData = false,
    ) {
    }

    /**
     * An object or an array becomes JSON, null 204.
     *
     * @throws \TypeError it can be neither
     */
    public function response(mixed $value): Response
    {
        if ($value === null) {
            return new Response($this->isNothing && $this->status !== 200 ? $this->status : 204);
        }
        if ($this->class !== null && \is_object($value) && $value::class === $this->class->class->name) {
            return Response::json($this->class->encode($value), $this->status);
        }

        return Response::json(JsonValue::of($value), $this->status);
    }

    /** The response to a handler whose signature says nothing about it. */
    public static function ofUndeclared(mixed $value): Response
    {
        return (new self())->response($value);
    }
}
