<?php

declare(strict_types=1);

namespace Weft\Http\Internal\Handlers;

use Weft\Http\Response;
use Weft\Internal\Codec\ClassCodec;
use Weft\Internal\Codec\MismatchException;
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
     * @param Type|null $type what it declares; null where it declares nothing or a Response
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
     * @throws UnusableResultException it can be neither
     */
    public function response(mixed $value): Response
    {
        if ($value === null) {
            return new Response($this->isNothing && $this->status !== 200 ? $this->status : 204);
        }
        try {
            return Response::json($this->class !== null && \is_object($value) && $value::class === $this->class->class->name ? $this->class->encode($value) : JsonValue::of($value, $this->type), $this->status);
        } catch (MismatchException $mismatch) {
            throw new UnusableResultException('returned an invalid ' . \get_debug_type($value) . ": at {$mismatch->path()} {$mismatch->problem}");
        } catch (\JsonException $fault) {
            throw new UnusableResultException("returned data that cannot be encoded as JSON: {$fault->getMessage()}", previous: $fault);
        }
    }

    /**
     * The response to a handler whose signature says nothing about it.
     *
     * @throws UnusableResultException
     */
    public static function ofUndeclared(mixed $value): Response
    {
        return (new self())->response($value);
    }
}
