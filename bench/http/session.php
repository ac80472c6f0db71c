<?php

declare(strict_types=1);

/** A connection and its statements, prepared once: of the contenders whose processes serve many requests. */
final class Session
{
    public readonly PDOStatement $person;
    public readonly PDOStatement $counter;
    public readonly PDOStatement $write;
    public readonly PDOStatement $fortunes;

    public function __construct()
    {
        $parts = parse_url((string) getenv('DATABASE_URL'));
        $dsn = sprintf('pgsql:host=%s;port=%d;dbname=%s;sslmode=disable', $parts['host'], $parts['port'], ltrim($parts['path'], '/'));
        $database = new PDO($dsn, $parts['user'], $parts['pass'], [PDO::ATTR_DEFAULT_FETCH_MODE => PDO::FETCH_ASSOC]);
        $this->person = $database->prepare('SELECT id, name, email FROM people WHERE id = ?');
        $this->counter = $database->prepare('SELECT id, value FROM counters WHERE id = ?');
        $this->write = $database->prepare('UPDATE counters SET value = ? WHERE id = ?');
        $this->fortunes = $database->prepare('SELECT id, message FROM fortunes');
    }

    /** @return array{id: int, name: string, email: string} */
    public function person(int $id): array
    {
        $this->person->execute([$id]);

        return $this->person->fetch();
    }

    /** @return list<array{id: int, name: string, email: string}> */
    public function people(int $count): array
    {
        $rows = [];
        for ($i = 0; $i < $count; ++$i) {
            $rows[] = $this->person(mt_rand(1, 10_000));
        }

        return $rows;
    }

    /** @return array{id: int, value: int} */
    public function update(): array
    {
        $this->counter->execute([mt_rand(1, 10_000)]);
        $row = $this->counter->fetch();
        $row['value'] = mt_rand(1, 10_000);
        $this->write->execute([$row['value'], $row['id']]);

        return $row;
    }

    /** @return list<array{id: int, message: string}> */
    public function fortunes(): array
    {
        $this->fortunes->execute();

        return $this->fortunes->fetchAll();
    }
}
