<?php

declare(strict_types=1);

namespace Weft\Runtime;

/** Every alternative of `Weft\any()` failed. The previous exception is the first failure. */
final class CompositeException extends RuntimeException
{
    /** @param non-empty-array<array-key, \Throwable> $failures by the keys given to `any()`, in order of failure */
    public function __construct(public readonly array $failures)
    {
        $reasons = [];
        foreach ($failures as $key => $failure) {
            $reasons[] = "$key: " . $failure::class . ': ' . $failure->getMessage();
        }
        parent::__construct(
            'All ' . \count($failures) . ' alternatives failed: ' . \implode('; ', $reasons),
            0,
            \reset($failures),
        );
    }
}
