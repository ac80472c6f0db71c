<?php

declare(strict_types=1);

namespace Weft\Bench\Grpc;

/** How the server is called in one turn. */
final class Preset
{
    /**
     * @param string $tool ghz, or h2load for rates that ghz cannot reach: it sends the same bytes again and decodes nothing
     * @param int $concurrency calls at a time
     * @param int $connections that share them
     * @param int $requests calls in all; with h2load, seconds
     */
    public function __construct(
        public readonly string $tool,
        public readonly Call $call,
        public readonly int $concurrency,
        public readonly int $connections,
        public readonly int $requests,
    ) {
    }

    /**
     * The six command lines of the published comparison, longer ones, and canned ones.
     *
     * @param int $long calls in a long turn
     * @param int $seconds of a canned turn
     *
     * @return list<self>
     */
    public static function all(int $long, int $seconds): array
    {
        $presets = [];
        foreach (Call::cases() as $call) {
            foreach ([[100, 1_000], [250, 10_000], [500, 10_000]] as [$concurrency, $requests]) {
                $presets[] = new self('ghz', $call, $concurrency, 1, $requests);
            }
            foreach ([1, 8, 50] as $connections) {
                $presets[] = new self('ghz', $call, 100, $connections, $long);
            }
            foreach ([1, 8, 50] as $connections) {
                $presets[] = new self('h2load', $call, 100, $connections, $seconds);
            }
        }

        return $presets;
    }

    public function isOneOf(array $tools): bool
    {
        return $tools === [] || in_array($this->tool, $tools, true);
    }

    public function name(): string
    {
        $amount = $this->tool === 'ghz' ? number_format($this->requests) . ' calls' : "{$this->requests} s";

        return "{$this->call->value}, {$this->concurrency} at a time on {$this->connections} connection"
            . ($this->connections === 1 ? '' : 's') . ", $amount, {$this->tool}";
    }
}
