<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Flow;

use Weft\Bus\Internal\Clock;
use Weft\Bus\Internal\Consuming\HandlingInterruptedException;
use Weft\Bus\Internal\Consuming\Worker;
use Weft\Bus\Internal\Handlers\Handler;
use Weft\Bus\Internal\Identifier;
use Weft\Bus\RateLimit;
use Weft\Sql\Database;

/**
 * Delays calls of handlers to their rate limit, by the generic cell rate algorithm (ITU-T I.371), a token bucket without tokens.
 *
 * @internal
 */
final class RateLimiter
{
    private const NAME_BYTES = 200;

    /** @var array<string, float> when the next turn is, by the monotonic clock and the name of the limit */
    private array $next = [];

    /** @var array<string, SharedRateLimiter> by name */
    private array $shared = [];

    /** @param Database|null $database where limits are shared */
    public function __construct(private readonly ?Database $database) {}

    /**
     * Waits until the handler may be called.
     *
     * @throws HandlingInterruptedException when the worker is stopped before
     */
    public function pass(Handler $handler, Worker $worker): void
    {
        $limit = $handler->attributes->rateLimit;
        if ($limit === null) {
            return;
        }
        $name = $limit->name ?? $handler->name;
        $worker->waitUntil($limit->shared ? $this->sharedOf($name, $limit)->turn($worker) : $this->turn($name, $limit));
    }

    private function turn(string $name, RateLimit $limit): float
    {
        $now = Clock::monotonic();
        $turn = \max($this->next[$name] ?? 0.0, $now - ($limit->burst - 1) / $limit->perSecond);
        $this->next[$name] = $turn + 1 / $limit->perSecond;

        return $turn;
    }

    private function sharedOf(string $name, RateLimit $limit): SharedRateLimiter
    {
        return $this->shared[$name] ??= new SharedRateLimiter(
            $this->database ?? throw new \Error("The rate limit \"{$name}\" is shared and needs a database: pass one to Bus::connect()"),
            // The name of an anonymous handler class does not fit into a column.
            Identifier::fit($name, self::NAME_BYTES),
            $limit,
        );
    }
}
