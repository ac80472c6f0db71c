<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Codec;

use Weft\Bus\Internal\Handlers\Handler;
use Weft\Bus\MessageDecodingException;
use Weft\Bus\MessageEncodingException;
use Weft\Bus\Route;
use Weft\Bus\Serializer;
use Weft\Internal\Codec\ClassCodec;
use Weft\Internal\Codec\JsonError;
use Weft\Internal\Codec\MismatchException;

/**
 * The type name and codec of a message class.
 *
 * @internal
 */
final class MessageClass
{
    /** json_decode() accepts one level less than json_encode() with the same number. */
    private const MAX_DEPTH = 511;

    private const FLAGS = \JSON_UNESCAPED_SLASHES | \JSON_UNESCAPED_UNICODE | \JSON_PRESERVE_ZERO_FRACTION;

    private const GENERATED = 'it is a class of Protocol Buffers, which has no JSON of the bus';

    /** Its first handler in this process. */
    public ?Handler $handler = null;

    /** @param class-string $class */
    public function __construct(
        public readonly string $class,
        public readonly string $type,
        public readonly int $version,
        private readonly ?ClassCodec $shape,
        private readonly EncryptionContext $binding = new EncryptionContext(),
        public readonly ?DeliveryPolicy $policy = null,
        public readonly ?Serializer $serializer = null,
        public readonly ?Route $route = null,
    ) {}

    /** Whether its objects can be JSON; those of Protocol Buffers have only their own format. */
    public function hasJson(): bool
    {
        return $this->shape !== null;
    }

    /**
     * @param (\Closure(array<string, mixed>): array<string, mixed>)|null $upcast brings the body to the version of the class
     * @param string $id of the message; empty where there is none
     *
     * @throws MessageDecodingException
     */
    public function decode(string $body, ?\Closure $upcast = null, string $id = ''): object
    {
        $data = \json_decode($body, true);
        if (!\is_array($data) || ($data !== [] && \array_is_list($data))) {
            throw $this->notAnObject($data);
        }
        /** @var array<string, mixed> $data */
        if ($upcast !== null) {
            $data = $upcast($data);
        }

        return $this->denormalize($data, $id);
    }

    /**
     * @param array<string, mixed> $data
     * @throws MessageDecodingException
     */
    public function denormalize(array $data, string $id): object
    {
        $this->binding->type = $this->type;
        $this->binding->id = $id;
        try {
            return ($this->shape ?? throw MessageDecodingException::because($this->class, self::GENERATED))->decode($data);
        } catch (MismatchException $mismatch) {
            throw MessageDecodingException::mismatch($this->class, $mismatch->path(), $mismatch->expected, $mismatch->found);
        }
    }

    /**
     * @param string $id of the message; empty where there is none
     * @throws MessageEncodingException
     */
    public function encode(object $message, string $id = ''): string
    {
        $body = \json_encode($this->normalize($message, $id), self::FLAGS, self::MAX_DEPTH);

        return $body === false ? throw $this->notJson($message) : $body;
    }

    /**
     * @return array<string, mixed>|\stdClass
     * @throws MessageEncodingException
     */
    public function normalize(object $message, string $id): array|\stdClass
    {
        $this->binding->type = $this->type;
        $this->binding->id = $id;
        try {
            return ($this->shape ?? throw MessageEncodingException::because($this->class, self::GENERATED))->encode($message);
        } catch (MismatchException $mismatch) {
            throw MessageEncodingException::at($this->class, $mismatch->path(), $mismatch->problem);
        } catch (\Error $uninitialised) {
            throw MessageEncodingException::at($this->class, '$', $uninitialised->getMessage());
        }
    }

    /** @return array<string, mixed> what {@see ClassCodec::schema()} says */
    public function fields(): array
    {
        return $this->shape?->schema() ?? [];
    }

    private function notAnObject(mixed $data): MessageDecodingException
    {
        return \json_last_error() === \JSON_ERROR_NONE
            ? MessageDecodingException::mismatch($this->class, '$', 'object', MismatchException::typeOf($data))
            : MessageDecodingException::malformed($this->class, \json_last_error_msg());
    }

    private function notJson(object $message): MessageEncodingException
    {
        $cause = \json_last_error_msg();
        try {
            JsonError::of($this->shape?->encode($message));
        } catch (MismatchException $mismatch) {
            return MessageEncodingException::at($this->class, $mismatch->path(), $mismatch->problem);
        }

        return MessageEncodingException::at($this->class, '$', $cause);
    }
}
