<?php

declare(strict_types=1);

namespace Weft\CloudEvents;

use Weft\Internal\Codec\Compiler;
use Weft\Internal\Codec\DateTime;
use Weft\Internal\Codec\JsonMemory;
use Weft\Internal\Codec\MismatchException;
use Weft\Internal\Codec\UnsupportedClassException;

use function Weft\Native\messageId;

/**
 * An event of CloudEvents 1.0, for HTTP: the JSON event format, and the HTTP protocol binding in binary and structured mode.
 *
 * A handler receives events by `#[Body]`; headers and body of a request, or of a response, make one for other programs:
 *
 * ```php
 * $routes->post('/events', static function (#[Body] CloudEvent $event) use ($bus): void {
 *     $bus->publish($event->decode(OrderPlaced::class));
 * });
 *
 * $event = new CloudEvent('shop.order.placed', '/shop', $order);
 * $client->request('POST', $url, ['headers' => $event->headers(), 'body' => $event->body()]);
 * ```
 *
 * The bus has a serializer of this format for AMQP: {@see \Weft\Bus\Serializer\CloudEvents}.
 */
final class CloudEvent
{
    private const JSON = 'application/cloudevents+json';
    private const PREFIX = 'ce-';
    /** Attributes of the specification; every other one is an extension. */
    private const OWN = ['specversion' => true, 'id' => true, 'source' => true, 'type' => true, 'time' => true, 'subject' => true, 'datacontenttype' => true, 'dataschema' => true];
    /** Names that an extension must not have, because the JSON format uses them. */
    private const RESERVED = ['data' => true, 'data_base64' => true];
    private const FLAGS = \JSON_THROW_ON_ERROR | \JSON_UNESCAPED_SLASHES | \JSON_UNESCAPED_UNICODE | \JSON_PRESERVE_ZERO_FRACTION;

    /** The depth that json_decode() accepts. */
    private const MAX_DEPTH = 512;

    private static ?Compiler $compiler = null;

    /**
     * The JSON of the data of events that were read, which {@see body()} writes unchanged: PHP's arrays and numbers do not tell `{}` from `[]`
     * and have no integers beyond 64 bits. Stored beside the event, so that equal events are equal; a closure until it is first needed, because
     * most events are only read.
     *
     * @var \WeakMap<self, string|(\Closure(): ?string)>|null
     */
    private static ?\WeakMap $received = null;

    /** Identifies the event together with {@see $source}. */
    public readonly string $id;

    /**
     * @param string $type of the event, such as `shop.order.placed`
     * @param string $source the context in which the event happened: a URI reference, such as `/shop`
     * @param mixed $data with a JSON content type an object, an array, a scalar or null; with any other one a string of bytes, or null. In an
     *                    event that was read a JSON object is an array, and an integer beyond 64 bits a float. An empty array is written as
     *                    `[]`: use a `\stdClass` for an empty object
     * @param string|null $id unique in the source; null for a new UUID (version 7)
     * @param \DateTimeImmutable|null $time of the event; microseconds are kept
     * @param string|null $subject of the event in the context of its source, such as `orders/7`
     * @param string $contentType the media type of the data
     * @param string|null $schema the URI of the schema of the data
     * @param array<string, string|int|bool> $extensions by name in lower case letters and digits, such as {@see \Weft\Runtime\Trace::headers()}
     *
     * @throws \ValueError when type, source or id are empty, the offset of the time has seconds, or an extension has an invalid name
     */
    public function __construct(
        public readonly string $type,
        public readonly string $source,
        public readonly mixed $data = null,
        ?string $id = null,
        public readonly ?\DateTimeImmutable $time = null,
        public readonly ?string $subject = null,
        public readonly string $contentType = 'application/json',
        public readonly ?string $schema = null,
        public readonly array $extensions = [],
    ) {
        $this->id = $id ?? messageId();
        foreach (['type' => $type, 'source' => $source, 'id' => $this->id, 'contentType' => $contentType] as $name => $value) {
            $value !== '' || throw new \ValueError("The $name of a CloudEvent must not be empty");
        }
        $offset = $time?->getOffset() ?? 0;
        $offset % 60 === 0 || throw new \ValueError("The time of a CloudEvent must have an offset of whole minutes (RFC 3339), got {$offset} s");
        foreach ($extensions as $name => $value) {
            if (\preg_match('/^[a-z0-9]+$/D', (string) $name) !== 1 || isset(self::OWN[$name]) || isset(self::RESERVED[$name])) {
                throw new \ValueError("\"$name\" cannot be an extension of a CloudEvent: a name consists of lower case letters and digits, and is none of the specification");
            }
        }
        if (!\is_string($data) && $data !== null && !self::isJson($contentType)) {
            throw new \ValueError("The data of a CloudEvent with the content type \"$contentType\" must be a string, got " . \get_debug_type($data));
        }
    }

    /**
     * Reads an event from a request or a response, in the mode that its content type names.
     *
     * @param array<string, string|list<string>> $headers names in any case
     *
     * @throws InvalidCloudEventException it is not an event, or a malformed one
     */
    public static function fromHttp(array $headers, string $body): self
    {
        $fields = [];
        foreach ($headers as $name => $value) {
            $fields[\strtolower((string) $name)] = \is_array($value) ? \implode(', ', $value) : $value;
        }
        $contentType = $fields['content-type'] ?? '';
        $type = self::mediaType($contentType);
        if ($type === self::JSON) {
            return self::structured($body);
        }
        if (\str_starts_with($type, 'application/cloudevents')) {
            throw new InvalidCloudEventException("The content type $type is not supported: expected " . self::JSON);
        }

        return self::binary($fields, $contentType, $body);
    }

    /**
     * The data as an object, decoded as messages of the bus are: types are checked, and other fields ignored.
     *
     * @template T of object
     *
     * @param class-string<T> $class
     * @return T
     *
     * @throws InvalidCloudEventException the data does not match the class
     */
    public function decode(string $class): object
    {
        if (!\is_array($this->data) || ($this->data !== [] && \array_is_list($this->data))) {
            throw new InvalidCloudEventException("The data of the CloudEvent {$this->type} is not a JSON object", $this);
        }
        try {
            return self::compiler()->shape($class)->decode($this->data);
        } catch (MismatchException $mismatch) {
            throw new InvalidCloudEventException("The data of the CloudEvent {$this->type} is invalid: at {$mismatch->path()} {$mismatch->problem}", $this, $mismatch);
        }
    }

    /**
     * The header fields of a message with this event.
     *
     * @return array<string, string> names in lower case
     */
    public function headers(ContentMode $mode = ContentMode::Binary): array
    {
        if ($mode === ContentMode::Structured) {
            return ['content-type' => self::JSON . '; charset=UTF-8'];
        }
        $headers = $this->hasData() ? ['content-type' => $this->contentType] : [];
        foreach ($this->attributes() as $name => $value) {
            if ($name !== 'datacontenttype') {
                // HTTP protocol binding §3.1.3.2: everything but printable ASCII without space, quote and percent sign.
                $text = \is_bool($value) ? ($value ? 'true' : 'false') : (string) $value;
                $headers[self::PREFIX . $name] = (string) \preg_replace_callback('/[^\x21\x23\x24\x26-\x7e]/', static fn(array $byte): string => \rawurlencode($byte[0]), $text);
            }
        }

        return $headers;
    }

    /**
     * The body of a message with this event. Objects are encoded as messages of the bus are, those in arrays too. The data of an event that
     * was read is written as it was.
     *
     * @throws \TypeError when JSON cannot represent the data
     */
    public function body(ContentMode $mode = ContentMode::Binary): string
    {
        if ($mode === ContentMode::Binary) {
            return match (true) {
                !$this->hasData() => '',
                self::isJson($this->contentType) => $this->json(),
                default => $this->data,
            };
        }
        $event = $this->encode($this->attributes());
        if (!$this->hasData()) {
            return $event;
        }
        $member = self::isJson($this->contentType) ? "\"data\":{$this->json()}" : '"data_base64":"' . \base64_encode($this->data) . '"';

        return \substr($event, 0, -1) . ",{$member}}";
    }

    /** Null is data only if it was read as JSON. */
    private function hasData(): bool
    {
        return $this->data !== null || isset(self::$received[$this]);
    }

    private function json(): string
    {
        $received = self::$received[$this] ?? null;
        if (\is_string($received)) {
            return $received;
        }
        $json = ($received === null ? null : $received()) ?? $this->encode(self::value($this->data));
        if ($received !== null) {
            self::$received[$this] = $json;
        }

        return $json;
    }

    /** @return array<string, string|int|bool> */
    private function attributes(): array
    {
        return \array_filter([
            'specversion' => '1.0',
            'id' => $this->id,
            'source' => $this->source,
            'type' => $this->type,
            'time' => $this->time?->format('Y-m-d\TH:i:s.uP'),
            'subject' => $this->subject,
            'datacontenttype' => $this->hasData() ? $this->contentType : null,
            'dataschema' => $this->schema,
        ] + $this->extensions, static fn(mixed $value): bool => $value !== null);
    }

    /** @param array<string, string> $fields */
    private static function binary(array $fields, string $contentType, string $body): self
    {
        $attributes = [];
        foreach ($fields as $name => $value) {
            if (\str_starts_with((string) $name, self::PREFIX)) {
                $attributes[\substr($name, \strlen(self::PREFIX))] = self::unescaped($value);
            }
        }
        $attributes['datacontenttype'] = $contentType;
        if ($body === '') {
            return self::of($attributes, null);
        }

        return self::isJson($contentType)
            ? self::withJson(self::of($attributes, self::parse($body)), static fn(): string => $body)
            : self::of($attributes, $body);
    }

    private static function structured(string $body): self
    {
        $event = self::parse($body);
        if (!\is_array($event) || ($event !== [] && \array_is_list($event))) {
            throw new InvalidCloudEventException('The CloudEvent is not a JSON object');
        }
        $hasData = \array_key_exists('data', $event);
        // An attribute that is null is the same as an absent one (JSON format §2.2).
        $event = \array_filter($event, static fn(mixed $value): bool => $value !== null);
        // The default of data without a content type (JSON format §3.1).
        $event += ['datacontenttype' => 'application/json'];
        $isJson = \is_string($event['datacontenttype']) && self::isJson($event['datacontenttype']);
        $data = $event['data'] ?? null;
        $json = static fn(): ?string => self::dataOf($body);
        if (isset($event['data_base64'])) {
            $bytes = \is_string($event['data_base64']) ? \base64_decode($event['data_base64'], true) : false;
            $bytes !== false && $data === null || throw new InvalidCloudEventException('The data_base64 of the CloudEvent is not base64, or it has data as well');
            $data = $isJson ? self::parse($bytes) : $bytes;
            $json = static fn(): string => (string) $bytes;
        }

        $read = self::of(\array_diff_key($event, self::RESERVED), $data);

        return $isJson && ($hasData || isset($event['data_base64'])) ? self::withJson($read, $json) : $read;
    }

    /** @param \Closure(): ?string $json */
    private static function withJson(self $event, \Closure $json): self
    {
        self::$received ??= new \WeakMap();
        self::$received[$event] = $json;

        return $event;
    }

    /** The text of the member "data" of an event in valid JSON. PHP has read the last one if there are several. */
    private static function dataOf(string $event): ?string
    {
        $data = $name = $start = null;
        $depth = $at = 0;
        while (($at += \strcspn($event, '"{}[]:,', $at)) < \strlen($event)) {
            $token = $event[$at] === '"' ? self::stringAt($event, $at) : $event[$at];
            $depth += match ($token) {
                '{', '[' => 1,
                '}', ']' => -1,
                default => 0,
            };
            if ($depth === 1 && $token === ':') {
                $start = $at + 1;
            } elseif ($depth === 1 && $token === ',' || $depth === 0) {
                $data = $start !== null && \json_decode((string) $name) === 'data' ? \trim(\substr($event, $start, $at - $start)) : $data;
                $start = null;
            } elseif ($depth === 1 && $start === null) {
                $name = $token;
            }
            $at += \strlen($token);
        }

        return $data;
    }

    /** The string that begins with the quotation mark at this place, in valid JSON. PCRE's limit of backtracking forbids a pattern. */
    private static function stringAt(string $event, int $start): string
    {
        $at = $start + 1;
        while ($event[$at += \strcspn($event, '"\\', $at)] === '\\') {
            $at += 2;
        }

        return \substr($event, $start, $at + 1 - $start);
    }

    /** @param array<array-key, mixed> $attributes */
    private static function of(array $attributes, mixed $data): self
    {
        foreach ($attributes as $name => $value) {
            if (!\is_string($value) && (isset(self::OWN[$name]) || !\is_int($value) && !\is_bool($value))) {
                throw new InvalidCloudEventException("The attribute $name of the CloudEvent is " . \get_debug_type($value) . ', expected string');
            }
            if (\is_string($value) && \preg_match('//u', $value) !== 1) {
                throw new InvalidCloudEventException("The attribute $name of the CloudEvent is not UTF-8");
            }
        }
        /** @var array<string, string|int|bool> $attributes */
        if (($attributes['specversion'] ?? '') !== '1.0') {
            throw new InvalidCloudEventException(isset($attributes['specversion']) ? "The specversion of the CloudEvent is {$attributes['specversion']}, expected 1.0" : 'The message is not a CloudEvent: it has no specversion');
        }
        foreach (['id', 'source', 'type'] as $name) {
            ($attributes[$name] ?? '') !== '' || throw new InvalidCloudEventException("The CloudEvent has no $name");
        }
        $contentType = (string) ($attributes['datacontenttype'] ?? '');
        try {
            return new self(
                (string) $attributes['type'],
                (string) $attributes['source'],
                $data,
                (string) $attributes['id'],
                isset($attributes['time']) ? self::time((string) $attributes['time']) : null,
                isset($attributes['subject']) ? (string) $attributes['subject'] : null,
                $contentType === '' ? ($data === null || !\is_string($data) ? 'application/json' : 'application/octet-stream') : $contentType,
                isset($attributes['dataschema']) ? (string) $attributes['dataschema'] : null,
                \array_diff_key($attributes, self::OWN),
            );
        } catch (\ValueError $error) {
            throw new InvalidCloudEventException($error->getMessage(), null, $error);
        }
    }

    /** RFC 3339 */
    private static function time(string $time): \DateTimeImmutable
    {
        try {
            return (new DateTime())->decode($time);
        } catch (MismatchException $mismatch) {
            throw new InvalidCloudEventException("The time of the CloudEvent is \"$time\", expected a time of RFC 3339 such as 2026-01-31T12:00:00Z", null, $mismatch);
        }
    }

    /** HTTP protocol binding §3.1.3.2: a quoted string (RFC 9110 §5.6.4), then one round of percent-decoding. */
    private static function unescaped(string $value): string
    {
        if (\strlen($value) > 1 && $value[0] === '"' && $value[-1] === '"') {
            $value = (string) \preg_replace('/\\\\(.)/s', '$1', \substr($value, 1, -1));
        }

        return \rawurldecode($value);
    }

    private static function parse(string $json): mixed
    {
        if (($problem = JsonMemory::problem($json, JsonMemory::limit($json))) !== null) {
            throw new InvalidCloudEventException("The CloudEvent {$problem}");
        }
        try {
            return \json_decode($json, true, 512, \JSON_THROW_ON_ERROR);
        } catch (\JsonException $error) {
            throw new InvalidCloudEventException("The CloudEvent is not valid JSON: {$error->getMessage()}", null, $error);
        }
    }

    private function encode(mixed $value): string
    {
        try {
            return \json_encode($value, self::FLAGS);
        } catch (\JsonException $error) {
            throw new \TypeError("JSON cannot represent the data of the CloudEvent {$this->type}: {$error->getMessage()}", 0, $error);
        }
    }

    /** The value for json_encode(), which would leave out the properties of an object that are not public. */
    private static function value(mixed $data, int $depth = 0): mixed
    {
        if (\is_array($data) || $data instanceof \stdClass) {
            $depth < self::MAX_DEPTH || throw new \TypeError('JSON cannot represent the data of a CloudEvent that is nested more than ' . self::MAX_DEPTH . ' deep (a cycle?)');
            $values = \array_map(static fn(mixed $value): mixed => self::value($value, $depth + 1), (array) $data);

            return \is_array($data) ? $values : (object) $values;
        }
        if (!\is_object($data) || $data instanceof \JsonSerializable || $data instanceof \BackedEnum) {
            return $data;
        }
        try {
            return $data instanceof \DateTimeImmutable ? (new DateTime())->encode($data) : self::compiler()->shape($data::class)->encode($data);
        } catch (UnsupportedClassException | MismatchException $error) {
            throw new \TypeError('JSON cannot represent a ' . $data::class . ": {$error->getMessage()}", 0, $error);
        }
    }

    private static function compiler(): Compiler
    {
        return self::$compiler ??= new Compiler();
    }

    private static function mediaType(string $contentType): string
    {
        return \strtolower(\trim(\explode(';', $contentType, 2)[0]));
    }

    private static function isJson(string $contentType): bool
    {
        $type = self::mediaType($contentType);

        return \str_ends_with($type, '/json') || \str_ends_with($type, '+json');
    }
}
