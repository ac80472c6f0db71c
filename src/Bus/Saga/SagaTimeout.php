<?php

declare(strict_types=1);

namespace Weft\Bus\Saga;

/**
 * Marks a public method of a {@see Saga} that handles a message scheduled with {@see SagaContext::timeout()}. The message carries the
 * saga's id. A timeout that arrives after the end of the saga is acknowledged and has no effect.
 */
#[\Attribute(\Attribute::TARGET_METHOD)]
final class SagaTimeout {}
