<?php

declare(strict_types=1);

namespace Weft\Http\Sessions;

use Weft\Http\SessionStore;
use Weft\Pool\Pool;

/**
 * Sessions in Redis or Valkey, by a pool of clients: phpredis, Predis, or another one with a function that sends a command.
 *
 * ```
 * $pool = new Pool(function () { $redis = new Redis(); $redis->connect('127.0.0.1'); return $redis; });
 * $routes->use(new Sessions(new RedisStore($pool)));
 * ```
 */
final class RedisStore implements SessionStore
{
    private const WRITE = <<<'LUA'
        if (redis.call('HGET', KEYS[1], 'version') or '0') ~= ARGV[1] then return 0 end
        redis.call('HSET', KEYS[1], 'version', ARGV[1] + 1, 'data', ARGV[2])
        redis.call('PEXPIRE', KEYS[1], ARGV[3])
        return 1
        LUA;

    /** @var \Closure(object, list<string>): mixed */
    private readonly \Closure $send;

    /**
     * @param Pool<object> $pool of clients
     * @param string $prefix of the keys
     * @param (\Closure(object, list<string>): mixed)|null $send sends a command by a client and returns the reply; null knows `\Redis` and
     *     `\Predis\Client`
     */
    public function __construct(private readonly Pool $pool, private readonly string $prefix = 'session:', ?\Closure $send = null)
    {
        $this->send = $send ?? self::send(...);
    }

    public function read(string $id): ?StoredSession
    {
        $reply = $this->command('HMGET', $this->prefix . $id, 'data', 'version');

        return \is_array($reply) && \is_string($reply[0] ?? null) ? new StoredSession($reply[0], (int) ($reply[1] ?? 0)) : null;
    }

    public function write(string $id, string $data, int $version, float $seconds): bool
    {
        return (int) $this->command('EVAL', self::WRITE, '1', $this->prefix . $id, (string) $version, $data, (string) (int) \ceil($seconds * 1_000)) === 1;
    }

    public function delete(string $id): void
    {
        $this->command('DEL', $this->prefix . $id);
    }

    /** Redis deletes expired keys itself. */
    public function prune(): void
    {
    }

    private function command(string ...$command): mixed
    {
        return $this->pool->with(fn(object $client): mixed => ($this->send)($client, \array_values($command)));
    }

    /** @param list<string> $command */
    private static function send(object $client, array $command): mixed
    {
        $reply = match (true) {
            \method_exists($client, 'rawCommand') => $client->rawCommand(...$command),
            \method_exists($client, 'executeRaw') => $client->executeRaw($command),
            default => throw new \Error('RedisStore does not know how to send a command by a ' . $client::class . ': pass a function'),
        };
        if ($reply === false && \method_exists($client, 'getLastError') && $client->getLastError() !== null) {
            throw new \RuntimeException("Redis refused {$command[0]}: {$client->getLastError()}");
        }

        return $reply;
    }
}
