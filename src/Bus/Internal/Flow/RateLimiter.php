<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Flow;

use Weft\Bus\Internal\Handlers\Handler;
use Weft\Bus\Internal\Identifier;
use Weft\Bus\RateLimit;
use Weft\Sql\Database;

use function Weft\delay;

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

    /** Waits until the handler may be called. */
    public function pass(Handler $handler): void
    {
        $limit = $handler->attributes->rateLimit;
        if ($limit === null) {
            return;
        }
        $name = $limit->name ?? $handler->name;
        $turn = $limit->shared ? $this->sharedOf($name, $limit)->turn() : $this->turn($name, $limit);
        $wait = $turn - \hrtime(true) / 1e9;
        $wait > 0.0 && delay($wait);
    }

    private function turn(string $name, RateLimit $limit): float
    {
        $now = \hrtime(true) / 1e9;
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
