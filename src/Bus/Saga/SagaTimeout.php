<?php

declare(strict_types=1);

namespace Weft\Bus\Saga;

/**
 * Marks a public method of a {@see Saga} whose message it sends to itself with {@see SagaContext::timeout()}. The message finds its
 * saga by itself. One that comes after the saga's end is acknowledged and has no effect.
 */
#[\Attribute(\Attribute::TARGET_METHOD)]
final class SagaTimeout {}
