<?php

declare(strict_types=1);

namespace Weft\Bus;

/** The headers a message travels with; all values are strings. */
final class Header
{
    /** UUID version 7 (RFC 9562 §5.7); stays the same when a message is redelivered, parked or replayed. */
    public const MESSAGE_ID = 'message-id';

    /** The id of the first message of the conversation; absent on that one. */
    public const CORRELATION_ID = 'correlation-id';

    /** The id of the message whose handler sent this one; absent where that is the first of the conversation. */
    public const CAUSATION_ID = 'causation-id';

    /**
     * W3C Trace Context §3.2; the parent is the handling that sent the message. Absent in a conversation that began in no
     * trace: see {@see Context::traceparent()}.
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

    /** 0 to 9, the highest first; absent means 4. On RabbitMQ it is the AMQP property `priority`. See {@see Priority}. */
    public const PRIORITY = 'weft-priority';

    /** When nobody needs the message any more, in milliseconds since 1970 by the sender's clock. See {@see Expires}. */
    public const EXPIRES_AT = 'weft-expires-at';

    /** What {@see OrderedBy} orders the message by. */
    public const ORDER_KEY = 'weft-order-key';

    /** What {@see FairBy} makes turns of. */
    public const FAIR_KEY = 'weft-fair-key';

    /** The id of the body where it does not travel with the message, see {@see ClaimCheck}. */
    public const CLAIM = 'weft-claim';

    /** The queue where the reply to a request is waited for. */
    public const REPLY_TO = 'weft-reply-to';

    /** On replies: the id of the request. */
    public const REPLY_TO_MESSAGE = 'weft-reply-to-message';

    /** On dead letters: the class of the error. */
    public const ERROR_CLASS = 'weft-error-class';

    /** On dead letters: the error's message, at most 2,000 bytes. */
    public const ERROR_MESSAGE = 'weft-error-message';

    /** On dead letters: the error's stack, at most 8,000 bytes. */
    public const ERROR_STACK = 'weft-error-stack';

    /**
     * On dead letters and on messages that come back for another try: which handlers failed, as `Class::method`, separated
     * by commas; empty when none was reached. Other listeners of the event do not run again.
     */
    public const FAILED_HANDLER = 'weft-failed-handler';

    /** On dead letters: when, as ISO 8601 in UTC. */
    public const FAILED_AT = 'weft-failed-at';

    /** On dead letters: the queue the message was taken from. */
    public const FAILED_QUEUE = 'weft-failed-queue';

    /** How often handling was tried and has failed. */
    public const ATTEMPTS = 'weft-attempts';

    /** How often the message has come back later after it had failed; absent means never. */
    public const RETRIES = 'weft-retries';

    /** On dead letters from RabbitMQ: the `expiration` the message came with, in milliseconds. A dead letter never expires. */
    public const EXPIRATION = 'weft-expiration';

    /** On dead letters from RabbitMQ: the `user-id` the broker had verified; only that user could send it on. */
    public const USER_ID = 'weft-user-id';

    /** On dead letters: how many headers were left out because the broker does not take so many bytes; else absent. */
    public const LEFT_OUT = 'weft-headers-left-out';

    /** On time-outs of a saga: its id. */
    public const SAGA_ID = 'weft-saga-id';

    private function __construct() {}
}
