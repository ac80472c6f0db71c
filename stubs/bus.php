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
