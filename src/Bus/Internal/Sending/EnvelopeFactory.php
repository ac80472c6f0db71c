<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Sending;

use Weft\Bus\Context;
use Weft\Bus\Header;
use Weft\Bus\Internal\Codec\Codec;
use Weft\Bus\Internal\Codec\MessageClass;
use Weft\Bus\Internal\Handlers\Handler;
use Weft\Bus\Internal\MessageKind;
use Weft\Bus\Internal\Serializing\MessageNormalizer;
use Weft\Bus\MessageEncodingException;
use Weft\Bus\Serializer;
use Weft\Bus\Serializer\Envelope;
use Weft\Bus\Transport\Outgoing;
use Weft\Runtime\CancelledException;
use Weft\Runtime\Trace;
use Weft\Sql\Transaction;

use function Weft\Native\messageId;

/**
 * Encodes messages and adds their headers.
 *
 * @internal
 */
final class EnvelopeFactory
{
    public function __construct(
        private readonly Codec $codec,
        private readonly BodyStore $claims,
    ) {}

    /**
     * Headers that follow from others are omitted: the broker parses every header of every message.
     *
     * @param MessageKind         $kind a reply is of the kind of its query
     * @param array<string, string> $more headers of its own
     * @param float|null            $due  when it leaves, as microtime(true) has it; null for now
     * @param Context|null $cause the handling that sends the message; null when it starts a conversation
     * @param Transaction|null $transaction after whose commit it leaves, see {@see BodyStore::store()}; null if it leaves regardless of one
     */
    public function wrap(MessageKind $kind, object $message, ?Context $cause, array $more = [], ?float $due = null, ?Transaction $transaction = null): Outgoing
    {
        $class = $this->codec->of($message::class);
        if ($class->handler !== null && $class->handler->kind !== $kind && ($class->handler->kind === MessageKind::Event) !== ($kind === MessageKind::Event) && $kind !== MessageKind::Query) {
            throw self::confused($class->handler, $kind);
        }
        $id = messageId();
        $body = $class->serializer === null ? $class->encode($message, $id) : '';
        $headers = [
            Header::MESSAGE_ID => $id,
        ];
        if ($kind === MessageKind::Command) {
            $headers[Header::KIND] = MessageKind::Command->value;
        }
        // Foreign messages have none, so that the version of those in a foreign format is always named.
        if ($class->version !== 1 || $class->serializer !== null) {
            $headers[Header::SCHEMA_VERSION] = (string) $class->version;
        }
        if ($cause !== null) {
            $headers += self::caused($cause);
        } elseif (($trace = Trace::current()) !== null) {
            $headers += $trace->headers();
        }
        if ($more !== []) {
            $headers += isset($more[Header::ORDER_KEY]) ? [Header::ORDER_KEY => self::orderKey($class, $more[Header::ORDER_KEY])] + $more : $more;
        }
        if ($class->policy !== null) {
            $headers += $class->policy->headers($message, $due);
        }
        $key = $headers[Header::ORDER_KEY] ?? null;
        if ($key !== null && isset($more[Header::PRIORITY])) {
            // A broker delivers the highest priority first, whatever the key.
            throw new \ValueError("Message {$class->class} is sent with the priority {$more[Header::PRIORITY]}, with which it would overtake earlier messages of its key \"{$key}\": messages of a class with #[OrderedBy] have the priority of their class");
        }
        $route = $class->route;
        if ($route !== null) {
            $headers += [Header::EXCHANGE => $route->exchange, Header::ROUTING_KEY => $route->keyOf($message, $class->type)] + $route->headers;
        }
        $type = $class->type;
        if ($class->serializer !== null) {
            [$type, $body, $headers] = $this->serialized($class->serializer, $class, $message, $headers);
        }
        if (\strlen($body) > $this->claims->threshold) {
            $this->claims->checkDelay($class->class, $due);
            $body = $this->claims->store($headers[Header::MESSAGE_ID], $body, $transaction);
            $headers[Header::CLAIM] = $headers[Header::MESSAGE_ID];
        }

        return new Outgoing($type, $body, $headers, mustRoute: $kind === MessageKind::Command);
    }

    /**
     * The name of the type of a message class.
     *
     * @param class-string $class
     */
    public function typeOf(string $class): string
    {
        return $this->codec->of($class)->type;
    }

    /**
     * In a format other than the bus's own.
     *
     * @param array<string, string> $headers
     * @return array{string, string, array<string, string>} type, body and headers
     */
    private function serialized(Serializer $serializer, MessageClass $class, object $message, array $headers): array
    {
        $id = $headers[Header::MESSAGE_ID];
        try {
            $encoded = $serializer->encode($message, new Envelope($class->type, '', $headers), new MessageNormalizer($this->codec, null, $class, $id));
            MessageHeaders::checkNames($encoded->headers);
        } catch (MessageEncodingException | CancelledException $thrown) {
            throw $thrown;
        } catch (\Throwable $thrown) {
            throw MessageEncodingException::because($class->class, $serializer::class . ' failed: ' . $thrown->getMessage(), $thrown);
        }

        return [$encoded->type, $encoded->body, [Header::MESSAGE_ID => $id] + $encoded->headers + [Header::CONTENT_TYPE => $serializer->contentType()]];
    }

    /** @throws \ValueError for a class that is not ordered, whose key receivers would not heed */
    private static function orderKey(MessageClass $class, string $key): string
    {
        return $class->policy?->orderKey($key) ?? throw new \ValueError("Message {$class->class} is sent with the ordering key \"{$key}\", but its class has no #[OrderedBy]");
    }

    /** Otherwise the message would be dropped without an error. */
    private static function confused(Handler $handler, MessageKind $kind): \Error
    {
        $what = "{$handler->message->class} is " . ($handler->kind === MessageKind::Event ? 'an event, handled by' : "a {$handler->kind->value}, handled by") . " {$handler->name}()";

        return new \Error($what . ($kind === MessageKind::Event ? ': use send() or request() instead of publish()' : ': use publish() instead of send()'));
    }

    /** @return array<string, string> */
    private static function caused(Context $cause): array
    {
        [$id, $conversation] = [$cause->messageId(), $cause->correlationId()];
        $headers = [Header::CORRELATION_ID => $conversation];
        if ($id !== $conversation) {
            $headers[Header::CAUSATION_ID] = $id;
        }
        if ($cause->header(Header::TRACEPARENT) !== null) {
            $headers += $cause->trace()->headers();
        }

        return $headers;
    }
}
