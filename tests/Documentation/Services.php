<?php

declare(strict_types=1);

namespace Weft\Tests\Documentation;

use Weft\Tests\Bus\Fixtures\VirtualHost;
use Weft\Tests\Hooks\Support\Redis;
use Weft\Tests\Sql\Support\EmptyDatabase;

/** The servers that a page uses: an empty database, a virtual host of RabbitMQ, a Redis of its own. */
final class Services
{
    private const POSTGRES = 'postgres://app:secret@localhost/app';
    private const POSTGRES_BY_PDO = 'pgsql:host=localhost;dbname=app;user=app;password=secret';
    private const MARIADB = 'mysql://app:secret@localhost/app';
    private const RABBITMQ = 'amqp://localhost';
    private const REDIS = 'localhost:6379';

    /** @var array<string, string> what pages say => what it is here */
    public readonly array $addresses;
    /** @var list<\Closure(): mixed> */
    private array $close = [];
    /** Stops when it is gone. */
    private ?Redis $redis = null;

    /** @param list<string> $needs of the page */
    public function __construct(array $needs)
    {
        $this->addresses = \array_merge(
            \in_array('postgres', $needs, true) ? $this->postgres() : [],
            \in_array('mariadb', $needs, true) ? $this->mariadb() : [],
            \in_array('rabbitmq', $needs, true) ? $this->rabbitmq() : [],
            \in_array('redis', $needs, true) ? $this->redis() : [],
        );
    }

    public function close(): void
    {
        foreach ($this->close as $close) {
            $close();
        }
        $this->redis = null;
    }

    /** @return array<string, string> */
    private function postgres(): array
    {
        $database = new EmptyDatabase('postgres');
        $this->close[] = $database->drop(...);

        return [self::POSTGRES => $database->dsn(), self::POSTGRES_BY_PDO => self::pdo($database->dsn())];
    }

    /** @return array<string, string> */
    private function mariadb(): array
    {
        $database = new EmptyDatabase('mariadb');
        $this->close[] = $database->drop(...);

        return [self::MARIADB => $database->dsn()];
    }

    /** @return array<string, string> */
    private function rabbitmq(): array
    {
        $host = VirtualHost::create(self::variable('RABBITMQ_MANAGEMENT_URL'));
        $this->close[] = $host->delete(...);

        return [self::RABBITMQ => $host->in(self::variable('AMQP_URL'))];
    }

    /** @return array<string, string> */
    private function redis(): array
    {
        $this->redis = Redis::start() ?? throw new \RuntimeException('redis-server is not installed: scripts/setup test');

        return [self::REDIS => "127.0.0.1:{$this->redis->port}"];
    }

    private static function pdo(string $dsn): string
    {
        $url = \parse_url($dsn);
        \parse_str($url['query'] ?? '', $query);

        return "pgsql:host={$url['host']};port={$url['port']};dbname=" . \substr($url['path'] ?? '', 1) . ";user={$url['user']};password={$url['pass']};options={$query['options']}";
    }

    private static function variable(string $name): string
    {
        return \getenv($name) ?: throw new \RuntimeException("$name is not set: run `make services`");
    }
}
