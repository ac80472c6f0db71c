<?php

declare(strict_types=1);

namespace Weft\Bus\Serializer;

use Weft\Bus\EnvelopeSerializer;
use Weft\Bus\Header;
use Weft\Bus\Internal\Serializing\JsonObject;

/**
 * The format of php-service-bus, so that a queue can be moved while there are messages in it, and old and new programs can work side by
 * side: version 3 and 4 (`{"message": {…}, "namespace": "Class"}`) and version 5 (the class in the header `x-message-type`).
 *
 * Reading accepts all versions. The trace id becomes the correlation id, and the trace if it is a UUID. Names in snake_case are accepted
 * for properties in camelCase, in the message itself.
 */
final class PhpServiceBus implements EnvelopeSerializer
{
    /** Names of version 5, then of the versions before. */
    private const CLASS_HEADERS = ['x-message-type', 'x-service-bus-message-type'];
    private const TRACE_HEADERS = ['x-trace-id', 'x-service-bus-trace-id'];
    private const RETRY_HEADERS = ['x-retry-count', 'x-service-bus-retry-count'];
    private const ENCODER = 'service_bus.encoder.default_handler';

    /** @var array<class-string, string> */
    private readonly array $names;

    /**
     * @param array<string, class-string> $classes classes of this program by the names of the classes in the other; others have the same
     *                                             name in both
     * @param 4|5                         $version version 4 or 5: of the programs that receive what is sent
     */
    public function __construct(
        private readonly array $classes = [],
        private readonly int $version = 5,
    ) {
        if ($version !== 4 && $version !== 5) {
            throw new \ValueError("Messages are written for version 4 or 5 of php-service-bus, got {$version}");
        }
        $this->names = \array_flip($classes);
    }

    public function contentType(): string
    {
        return 'application/json';
    }

    public function encode(object $message, Envelope $envelope, Normalizer $normalizer): Envelope
    {
        $class = $this->names[$message::class] ?? $message::class;
        $trace = $envelope->header(Header::CORRELATION_ID) ?? $envelope->header(Header::MESSAGE_ID);
        $data = $normalizer->normalize($message);
        if ($this->version === 4) {
            return $envelope->with(
                body: JsonObject::encode($class, ['message' => $data === [] ? new \stdClass() : $data, 'namespace' => $class]),
                headers: ['X-SERVICE-BUS-TRACE-ID' => $trace, 'X-SERVICE-BUS-ENCODER' => self::ENCODER],
            );
        }

        return $envelope->with(
            body: JsonObject::encode($class, $data),
            headers: ['x-message-type' => $class, 'x-message-id' => $envelope->header(Header::MESSAGE_ID), 'x-trace-id' => $trace, 'x-encoder-type' => self::ENCODER],
        );
    }

    public function open(Envelope $received): ?Envelope
    {
        $found = \array_change_key_case($received->headers);
        $class = self::first($found, self::CLASS_HEADERS) ?? self::classOf($received, $found);
        if ($class === null) {
            return null;
        }
        $trace = self::first($found, self::TRACE_HEADERS);
        $headers = [
            Header::MESSAGE_ID => $found['x-message-id'] ?? null,
            Header::CORRELATION_ID => $trace,
            Header::TRACEPARENT => $trace === null ? null : self::traceparent($trace),
            Header::ATTEMPTS => self::first($found, self::RETRY_HEADERS),
        ];
        // The bus's own headers win: those of a message that was retried or sent by Weft.
        $headers = \array_filter($headers, static fn(?string $value, string $name): bool => $value !== null && $value !== '' && $received->header($name) === null, \ARRAY_FILTER_USE_BOTH);

        return $received->with(type: $this->classes[$class] ?? $class, headers: $headers);
    }

    public function decode(Envelope $envelope, string $class, Normalizer $normalizer): object
    {
        $data = JsonObject::decode($class, $envelope->body);
        if (\array_keys($data) === ['message', 'namespace'] && \is_array($data['message']) && \is_string($data['namespace'])) {
            /** @var array<string, mixed> $data */
            $data = $data['message'];
        }
        foreach ($data as $name => $value) {
            $camel = \lcfirst(\str_replace('_', '', \ucwords((string) $name, '_')));
            $data += [$camel => $value];
        }

        return $normalizer->denormalize($class, $data);
    }

    /**
     * The class that a body of version 3 or 4 names.
     *
     * @param array<string, string> $found headers, in lower case
     */
    private static function classOf(Envelope $received, array $found): ?string
    {
        if (!isset($found['x-service-bus-trace-id']) && !isset($found['x-service-bus-encoder']) && !\str_contains($received->body, '"namespace"')) {
            return null;
        }
        $data = \json_decode($received->body, true);

        return \is_array($data) && \is_array($data['message'] ?? null) && \is_string($data['namespace'] ?? null) && $data['namespace'] !== '' ? $data['namespace'] : null;
    }

    /** The trace goes on in the new program; its span is made of the trace id, the same for each message of the trace. */
    private static function traceparent(string $trace): ?string
    {
        $id = \strtolower(\str_replace('-', '', $trace));

        return \preg_match('/^(?!0{32})[\da-f]{32}$/D', $id) === 1 ? "00-{$id}-" . \substr(\hash('sha256', $id), 0, 16) . '-01' : null;
    }

    /**
     * @param array<string, string> $headers
     * @param list<string>          $names
     */
    private static function first(array $headers, array $names): ?string
    {
        foreach ($names as $name) {
            if (($headers[$name] ?? '') !== '') {
                return $headers[$name];
            }
        }

        return null;
    }
}
