<?php

declare(strict_types=1);

namespace Weft\Bench\Pool;

use Swoole\Coroutine\Channel;

/**
 * Connections as users of Swoole write them: PDO with its hooks, and with a pool a channel of connections whose statement was prepared once.
 *
 * It opens as many as are to be idle at first, and more when none is free, up to the size of the pool. None is replaced for its age.
 */
final class SwooleConnections implements Connections
{
    private readonly Channel $idle;
    private int $open = 0;

    /** @param string $url of the database */
    public function __construct(private readonly string $url, private readonly Settings $settings)
    {
        $this->idle = new Channel($settings->number('pool.size'));
        for ($i = $settings->flag('pool.enabled') ? $settings->number('pool.minimum_idle') : 0; $i > 0; --$i) {
            ++$this->open;
            $this->idle->push($this->statement());
        }
    }

    public function sleep(float $seconds): void
    {
        if (!$this->settings->flag('pool.enabled')) {
            self::execute($this->statement(), $seconds);

            return;
        }
        $statement = $this->borrow();
        try {
            self::execute($statement, $seconds);
        } finally {
            $this->idle->push($statement);
        }
    }

    private static function execute(\PDOStatement $statement, float $seconds): void
    {
        $statement->execute([$seconds]);
        $statement->fetchAll();
    }

    private function borrow(): \PDOStatement
    {
        if ($this->idle->isEmpty() && $this->open < $this->settings->number('pool.size')) {
            ++$this->open;
            try {
                return $this->statement();
            } catch (\Throwable $failure) {
                --$this->open;
                throw $failure;
            }
        }

        return $this->idle->pop($this->settings->seconds('pool.borrowing_timeout_sec')) ?: throw new \RuntimeException('no connection was free in time');
    }

    /** A connection of its own, with the statement; it is closed with it. */
    private function statement(): \PDOStatement
    {
        $parts = parse_url($this->url);
        $isPostgres = str_starts_with($this->url, 'postgres');
        $dsn = sprintf(
            '%s:host=%s;port=%d;dbname=%s%s',
            $isPostgres ? 'pgsql' : 'mysql',
            $parts['host'],
            $parts['port'] ?? ($isPostgres ? 5432 : 3306),
            ltrim($parts['path'], '/'),
            $isPostgres ? ';sslmode=disable' : '',
        );
        $connection = new \PDO($dsn, rawurldecode($parts['user']), rawurldecode($parts['pass'] ?? ''), [\PDO::ATTR_EMULATE_PREPARES => false]);
        $statement = $connection->prepare(Sleep::sql($this->url));
        if ($this->settings->seconds('connection.max_delay_sec') > 0.0) {
            self::execute($statement, $this->settings->randomSeconds('connection.min_delay_sec', 'connection.max_delay_sec'));
        }

        return $statement;
    }
}
