<?php

declare(strict_types=1);

namespace Weft\Workers\Internal;

/**
 * A report that PHP code has blocked the event loop of a worker.
 *
 * @internal
 */
final class BlockedLoop
{
    /** @param list<string> $trace the PHP stack, innermost call first */
    private function __construct(private readonly float $seconds, private readonly array $trace)
    {
    }

    /** @param array<string, mixed> $message as the worker sent it */
    public static function of(array $message): self
    {
        /** @var list<string> $trace */
        $trace = (array) $message['trace'];

        return new self((float) $message['seconds'], $trace);
    }

    /** @return array{seconds: float, function: string, stack: string} */
    public function context(): array
    {
        return ['seconds' => \round($this->seconds, 3), 'function' => $this->trace[0] ?? 'an unknown function', 'stack' => $this->stack()];
    }

    /** The trace, one call per line; the calls of Weft are only counted, unless there are no others. */
    private function stack(): string
    {
        $application = \array_filter($this->trace, static fn(string $call): bool => !self::isOwn($call));
        $lines = [];
        foreach ($application === [] ? $this->trace : $application as $n => $call) {
            $lines[] = "#$n $call";
        }
        $folded = $application === [] ? 0 : \count($this->trace) - \count($application);
        $folded > 0 && $lines[] = "… $folded frame" . ($folded === 1 ? '' : 's') . ' of Weft';

        return $lines === [] ? 'no trace could be read' : \implode("\n", $lines);
    }

    private static function isOwn(string $call): bool
    {
        return \str_contains($call, ' at ' . \dirname(__DIR__, 2) . '/') || \str_starts_with($call, 'Weft\\Native\\');
    }
}
