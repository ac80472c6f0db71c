<?php

declare(strict_types=1);

namespace Weft\Native;

/** A UUID of version 7 (RFC 9562 §5.7); ids of one process sort in the order they were made. */
function messageId(): string
{
}

/**
 * The W3C `traceparent` of a new span (Trace Context §3.2): in the trace of `$parent`, or in a new one when that is absent
 * or malformed.
 */
function traceparent(?string $parent = null): string
{
}

/**
 * The `traceparent` of the handling of a message in a conversation that began in no trace: `$conversation` without its hyphens
 * is the trace id, the second half of `$message` the span's. Always the same for the same two; a new trace where one is no UUID.
 */
function conversationTraceparent(string $conversation, string $message): string
{
}

/** A UUID in lower case with hyphens as 26 digits of Crockford's base 32, as ULIDs are written; anything else as it is. */
function shortId(string $id): string
{
}

/** The inverse of {@see shortId()}. */
function longId(string $id): string
{
}
