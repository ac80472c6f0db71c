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

    /** The trace, one call per line. */
    private function stack(): string
    {
        return $this->trace === [] ? 'no trace could be read' : \implode("\n", \array_map(static fn(int $n, string $call): string => "#$n $call", \array_keys($this->trace), $this->trace));
    }
}
