<?php

declare(strict_types=1);

namespace Weft\Bus\Serializer;

use Weft\Bus\EnvelopeSerializer;
use Weft\Bus\Header;
use Weft\Bus\Internal\Clock;
use Weft\Bus\Internal\Serializing\JsonObject;
use Weft\Bus\Internal\Serializing\MediaType;
use Weft\Bus\MessageDecodingException;
use Weft\Bus\Serializer;
use Weft\CloudEvents\ContentMode;

/**
 * CloudEvents 1.0: the JSON event format, and the AMQP protocol binding in binary and structured mode.
 *
 * The type name of the message is the attribute `type`, the message id is `id`. Trace and conversation travel as the extensions
 * `traceparent`, `tracestate`, `correlationid` and `causationid`. A handler finds all attributes of a received event as headers:
 * `$context->header('cloudEvents_source')`.
 *
 * CloudEvents are unique by source and id: the message id of a received event is both, separated by a space. It is the id alone where
 * that is a UUID and the event has this program's source, or the AMQP property `message-id` has it, too, as in events of other buses.
 *
 * ```php
 * new BusOptions(messages: new MessageOptions(serializers: ['shop.*' => new CloudEvents('/shop', ContentMode::Structured)]))
 * ```
 */
final class CloudEvents implements EnvelopeSerializer
{
    private const STRUCTURED = 'application/cloudevents';
    private const JSON = 'application/cloudevents+json';
    private const BATCH = 'application/cloudevents-batch';

    /** The AMQP binding prefers `_`, because JMS does not allow `:` in names (§3.1.3.1). */
    private const PREFIX = 'cloudEvents_';
    private const OTHER_PREFIX = 'cloudEvents:';

    private const REQUIRED = ['id', 'source', 'specversion', 'type'];

    /** Attributes that are headers of the bus. */
    private const KNOWN = [
        'traceparent' => Header::TRACEPARENT,
        'tracestate' => Header::TRACESTATE,
        'correlationid' => Header::CORRELATION_ID,
        'causationid' => Header::CAUSATION_ID,
    ];

    private const UUID = '/^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/Di';

    private readonly Serializer $data;

    /**
     * @param string          $source of the events that this program sends: a URI reference, such as `/shop` or `https://shop.example`
     * @param ContentMode     $mode   how events are written; both ways are read
     * @param Serializer|null $data   the format of the data; null for JSON, also for the events that are read
     *
     * @throws \ValueError when the source is empty
     */
    public function __construct(
        private readonly string $source,
        private readonly ContentMode $mode = ContentMode::Binary,
        ?Serializer $data = null,
    ) {
        $source !== '' || throw new \ValueError('The source of CloudEvents must not be empty');
        $this->data = $data ?? new Json();
    }

    public function contentType(): string
    {
        return $this->mode === ContentMode::Structured ? self::JSON : $this->data->contentType();
    }

    public function encode(object $message, Envelope $envelope, Normalizer $normalizer): Envelope
    {
        $attributes = [
            'specversion' => '1.0',
            'id' => $envelope->header(Header::MESSAGE_ID) ?? '',
            'source' => $this->source,
            'type' => $envelope->type,
            'time' => (new \DateTimeImmutable(\sprintf('@%.6F', Clock::now())))->format('Y-m-d\TH:i:s.u\Z'),
        ];
        foreach (self::KNOWN as $attribute => $header) {
            if (($value = $envelope->header($header)) !== null) {
                $attributes[$attribute] = $value;
            }
        }

        return $this->mode === ContentMode::Binary
            ? $this->binary($this->data->encode($message, $envelope, $normalizer), $attributes)
            : $this->structured($message, $envelope, $normalizer, $attributes);
    }

    public function open(Envelope $received): ?Envelope
    {
        $attributes = $this->isStructured($received) ? $this->attributes($received) : self::fromHeaders($received->headers);
        if ($attributes === null) {
            return null;
        }
        $missing = \array_filter(self::REQUIRED, static fn(string $name): bool => !\is_string($attributes[$name] ?? null) || $attributes[$name] === '');
        if ($missing !== [] || $attributes['specversion'] !== '1.0') {
            throw MessageDecodingException::because('a CloudEvent', $missing === [] ? 'its specversion is not 1.0' : 'it has no ' . \implode(', no ', $missing));
        }
        [$id, $source, $type] = [(string) $attributes['id'], (string) $attributes['source'], (string) $attributes['type']];
        // Replies and encrypted values name the id that the sending bus has given.
        $isAlone = \preg_match(self::UUID, $id) === 1 && ($source === $this->source || $received->header(Header::MESSAGE_ID) === $id);
        $headers = [Header::MESSAGE_ID => $isAlone ? $id : "{$source} {$id}"];
        foreach ($attributes as $name => $value) {
            $text = \is_string($value) ? $value : (string) \json_encode($value);
            $headers[self::KNOWN[$name] ?? self::PREFIX . $name] = $text;
        }

        return $received->with(type: $type, headers: $headers);
    }

    public function decode(Envelope $envelope, string $class, Normalizer $normalizer): object
    {
        if (!$this->isStructured($envelope)) {
            return $this->data->decode($envelope, $class, $normalizer);
        }
        $event = JsonObject::decode($class, $envelope->body);
        $type = \is_string($event['datacontenttype'] ?? null) ? $event['datacontenttype'] : 'application/json';
        if (\is_string($event['data_base64'] ?? null)) {
            $bytes = \base64_decode($event['data_base64'], true);

            return $bytes === false
                ? throw MessageDecodingException::because($class, 'data_base64 is not base64')
                : $this->data->decode($envelope->with(body: $bytes, headers: [Header::CONTENT_TYPE => $type]), $class, $normalizer);
        }
        $data = $event['data'] ?? null;
        if (!MediaType::isJson($type)) {
            return \is_string($data)
                ? $this->data->decode($envelope->with(body: $data, headers: [Header::CONTENT_TYPE => $type]), $class, $normalizer)
                : throw MessageDecodingException::because($class, 'its data is not a string, and datacontenttype is not JSON');
        }
        if (!\is_array($data) || ($data !== [] && \array_is_list($data))) {
            throw MessageDecodingException::because($class, 'its data is not a JSON object');
        }
        /** @var array<string, mixed> $data */

        return $normalizer->denormalize($class, $data);
    }

    /** @param array<string, mixed> $attributes */
    private function binary(Envelope $data, array $attributes): Envelope
    {
        $headers = [Header::CONTENT_TYPE => $this->data->contentType()];
        foreach ($attributes as $name => $value) {
            $headers[self::PREFIX . $name] = (string) $value;
        }

        return $data->with(headers: $headers);
    }

    /** @param array<string, mixed> $attributes */
    private function structured(object $message, Envelope $envelope, Normalizer $normalizer, array $attributes): Envelope
    {
        $attributes['datacontenttype'] = $this->data->contentType();
        if ($this->data instanceof Json) {
            $data = $normalizer->normalize($message);
            $attributes['data'] = $data === [] ? new \stdClass() : $data;
        } else {
            $attributes['data_base64'] = \base64_encode($this->data->encode($message, $envelope, $normalizer)->body);
        }

        return $envelope->with(body: JsonObject::encode($message::class, $attributes), headers: [Header::CONTENT_TYPE => self::JSON . '; charset=UTF-8']);
    }

    private function isStructured(Envelope $envelope): bool
    {
        return \str_starts_with(\strtolower($envelope->header(Header::CONTENT_TYPE) ?? ''), self::STRUCTURED);
    }

    /**
     * Those of an event in the JSON format.
     *
     * @return array<string, mixed>
     */
    private function attributes(Envelope $envelope): array
    {
        $type = MediaType::of($envelope->header(Header::CONTENT_TYPE) ?? '');
        if (\str_starts_with($type, self::BATCH)) {
            throw MessageDecodingException::because('a CloudEvent', "batches of events ({$type}) are not read");
        }
        if ($type !== self::JSON) {
            throw MessageDecodingException::because('a CloudEvent', 'its format is not JSON: it has another content type than ' . self::JSON);
        }
        $event = JsonObject::decode('a CloudEvent', $envelope->body);

        // Null is the same as absent (JSON format §2.2).
        return \array_filter(\array_diff_key($event, ['data' => true, 'data_base64' => true]), static fn(mixed $value): bool => $value !== null);
    }

    /**
     * @param array<string, string> $headers
     * @return array<string, string>|null null unless it has all required attributes
     */
    private static function fromHeaders(array $headers): ?array
    {
        $attributes = [];
        foreach ($headers as $name => $value) {
            $name = (string) $name;
            if (\str_starts_with($name, self::PREFIX) || \str_starts_with($name, self::OTHER_PREFIX)) {
                $attributes[\substr($name, \strlen(self::PREFIX))] = $value;
            }
        }

        return \array_diff(self::REQUIRED, \array_keys($attributes)) === [] ? $attributes : null;
    }
}
