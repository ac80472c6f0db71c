<?php

declare(strict_types=1);

namespace Weft\Bus;

/** Which messages a bus knows and how their bodies travel; see {@see BusOptions}. */
final class MessageOptions
{
    /**
     * A rule for several classes has as its key an interface, a base class, or a pattern of type names such as `shop.*`. The rule for a class
     * or its type name wins over these; two others that fit a class and differ are an {@see InvalidMessageClassError}.
     *
     * @param list<class-string>        $classes     message classes without a handler in this program. Their events are acknowledged instead
     *                                               of dead-lettered as unknown, replies of these classes are decoded, listeners of
     *                                               interfaces and patterns hear them, and properties that cannot be encoded are reported
     *                                               when the bus connects. List them in programs that only send or only listen
     * @param ClaimCheck|null           $claims      stores large bodies outside the broker. Set it where bodies exceed about 64 KiB
     * @param KeyRing|null              $keys        encrypts properties marked {@see Encrypted}. Set it where a message class has such properties
     * @param array<string, Serializer> $serializers formats of the messages that are sent, by rule; instead of {@see SerializedBy}. Set them
     *                                               where other programs receive the messages; default: JSON
     * @param array<string, Route>      $routes      exchanges of the messages that are sent, by rule; instead of the attribute {@see Route}. Set
     *                                               them where other programs own the exchanges
     * @param array<string, Serializer|list<Serializer>> $queueSerializers formats of the messages in a queue, by its name. Several are tried
     *                                               in order; a message in none of them is read as the bus's own. Set them where other
     *                                               programs send the messages
     */
    public function __construct(
        public readonly array $classes = [],
        public readonly ?ClaimCheck $claims = null,
        public readonly ?KeyRing $keys = null,
        public readonly array $serializers = [],
        public readonly array $routes = [],
        public readonly array $queueSerializers = [],
    ) {}
}
