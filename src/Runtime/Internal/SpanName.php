<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

use function Weft\Native\traceparent;

/**
 * Names spans. It is apart from {@see \Weft\Runtime\Trace}, which the logger needs without the extension.
 *
 * @internal
 */
final class SpanName
{
    /** The `traceparent` of a new span: a child of the caller's, or the first of a new trace if that is null or malformed. */
    public static function childOf(?string $traceparent): string
    {
        return traceparent($traceparent);
    }
}
