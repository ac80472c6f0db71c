<?php

declare(strict_types=1);

namespace Weft\Bus;

/** The headers of a message. All values are strings. */
final class Header
{
    /** UUID version 7 (RFC 9562 §5.7); stays the same when a message is redelivered, dead-lettered or retried. */
    public const MESSAGE_ID = 'message-id';

    /** The id of the first message of the conversation; absent on the first message. */
    public const CORRELATION_ID = 'correlation-id';

    /** The id of the message whose handler sent this one; absent where that is the first of the conversation. */
    public const CAUSATION_ID = 'causation-id';

    /**
     * W3C Trace Context §3.2; the parent is the handling that sent the message. Absent in a conversation that began in no
     * trace: see {@see Context::trace()}.
     */
    public const TRACEPARENT = 'traceparent';

    /** W3C Trace Context §3.3, passed on unchanged. */
    public const TRACESTATE = 'tracestate';

    /** Absent means `application/json`. */
    public const CONTENT_TYPE = 'content-type';

    /** {@see MessageType::$version}; absent means 1. */
    public const SCHEMA_VERSION = 'schema-version';

    /** `command` on commands, absent on events. */
    public const KIND = 'weft-kind';

    /** 0 to 9, highest first; absent means 4. On RabbitMQ it is the AMQP property `priority`. See {@see Priority}. */
    public const PRIORITY = 'weft-priority';

    /** When the message expires, in milliseconds since 1970 by the sender's clock. See {@see Expires}. */
    public const EXPIRES_AT = 'weft-expires-at';

    /** The key that {@see OrderedBy} orders by. */
    public const ORDER_KEY = 'weft-order-key';

    /** The key that {@see FairBy} distributes by. */
    public const FAIR_KEY = 'weft-fair-key';

    /** The id of a body that is in a claim-check store, see {@see ClaimCheck}. */
    public const CLAIM = 'weft-claim';

    /** On delayed messages: {@see SendOptions::$id}. */
    public const DELAY_ID = 'weft-delay-id';

    /** The queue that the reply to a request is sent to. */
    public const REPLY_TO = 'weft-reply-to';

    /** On replies: the id of the request. */
    public const REPLY_TO_MESSAGE = 'weft-reply-to-message';

    /** The exchange of RabbitMQ that the message goes through, see {@see Route}; removed when it is published. */
    public const EXCHANGE = 'weft-exchange';

    /** The routing key for {@see EXCHANGE}. */
    public const ROUTING_KEY = 'weft-routing-key';

    /** On dead letters: the class of the error. */
    public const ERROR_CLASS = 'weft-error-class';

    /** On dead letters: the error's message, at most 2,000 bytes. */
    public const ERROR_MESSAGE = 'weft-error-message';

    /** On dead letters: the error's stack, at most 8,000 bytes. */
    public const ERROR_STACK = 'weft-error-stack';

    /**
     * On dead letters and retried messages: the handlers that failed, as `Class::method`, separated by commas; empty when no handler was
     * called. Other listeners of the event do not run again.
     */
    public const FAILED_HANDLER = 'weft-failed-handler';

    /** On dead letters: the time of the failure, as ISO 8601 in UTC. */
    public const FAILED_AT = 'weft-failed-at';

    /** On dead letters: the queue in which the message failed. */
    public const FAILED_QUEUE = 'weft-failed-queue';

    /** The number of failed attempts to handle the message. */
    public const ATTEMPTS = 'weft-attempts';

    /** The number of delayed retries so far; absent means none. */
    public const RETRIES = 'weft-retries';

    /** On dead letters from RabbitMQ: the original `expiration` of the message, in milliseconds. A dead letter never expires. */
    public const EXPIRATION = 'weft-expiration';

    /** On dead letters from RabbitMQ: the `user-id` that the broker had verified; only that user could publish it again. */
    public const USER_ID = 'weft-user-id';

    /** On dead letters: the number of headers that were removed because the broker limits their size; otherwise absent. */
    public const LEFT_OUT = 'weft-headers-left-out';

    /** On timeouts of a saga: the id of the saga. */
    public const SAGA_ID = 'weft-saga-id';

    private function __construct() {}
}
