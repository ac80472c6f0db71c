<?php

declare(strict_types=1);

namespace Weft\Bench\Bus;

use Weft\Bench\BenchmarkException;

/** One SQLite file that is both broker and database. */
final class SqliteGround implements Ground
{
    /** @param string $directory of its own; emptied before every run */
    public function __construct(private readonly string $directory)
    {
    }

    public function reset(): void
    {
        @mkdir($this->directory, recursive: true);
        self::clear($this->directory);
        $this->connect()->exec('CREATE TABLE customers (id TEXT PRIMARY KEY, name TEXT NOT NULL, email TEXT NOT NULL)');
    }

    public function environment(): array
    {
        return ['TRANSPORT' => Transport::Sqlite->value, 'DATABASE_URL' => "sqlite://{$this->path()}"];
    }

    /** The queue's tables belong to the contender, so the contender counts its remaining messages. */
    public function inspect(Report $report): Stored
    {
        [$rows, $customers] = $this->connect()->query('SELECT COUNT(*), COUNT(DISTINCT name) FROM customers')->fetch(\PDO::FETCH_NUM);

        return new Stored($rows, $customers, $report->queued ?? throw new BenchmarkException('its output has no number queued'));
    }

    public function timeline(): Timeline
    {
        return new Timeline(null);
    }

    public function cpu(): ?ServerCpu
    {
        return null;
    }

    private static function clear(string $directory): void
    {
        foreach (glob("$directory/*") as $entry) {
            if (is_dir($entry)) {
                self::clear($entry);
                rmdir($entry);
            } else {
                unlink($entry);
            }
        }
    }

    private function connect(): \PDO
    {
        return new \PDO("sqlite:{$this->path()}");
    }

    private function path(): string
    {
        return "{$this->directory}/customers.sqlite";
    }
}
