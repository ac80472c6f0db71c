<?php

declare(strict_types=1);

namespace Weft\Examples\Customers;

use Weft\Sql\Database;
use Weft\Sql\Driver;

/**
 * What the program remembers between two starts: how far it got, and which events it has seen.
 *
 * It is written when the program stops; what the handlers did is in the database and in the queue at any time.
 */
final class Run
{
    /** Commands sent so far. */
    public int $sent = 0;

    private function __construct(
        private readonly Database $database,
        public readonly int $number,
        public readonly int $commands,
        /** True if the last start ended without saving, as after `kill -9`. */
        public readonly bool $wasKilled,
        public readonly bool $isContinued,
    ) {
    }

    /** Continues the run that was stopped unless a fresh one is asked for; begins that with an empty table. */
    public static function open(Database $database, int $commands, bool $fresh): self
    {
        self::createTables($database);
        $last = $database->execute('SELECT * FROM demo_runs ORDER BY number DESC LIMIT 1')->first();
        if ($fresh || $last === null || $last['finished'] || ($last['saved'] === false && $last['sent'] < $last['commands'])) {
            return self::begin($database, ($last['number'] ?? 0) + 1, $commands);
        }
        $run = new self($database, $last['number'], $last['commands'], !$last['saved'], true);
        $run->sent = $last['sent'];
        $database->execute('UPDATE demo_runs SET saved = false WHERE number = ?', [$run->number]);

        return $run;
    }

    /** Every command is in the queue: from here on a crash loses nothing. */
    public function filled(int $sent): void
    {
        $this->sent = $sent;
        $this->database->execute('UPDATE demo_runs SET sent = ? WHERE number = ?', [$sent, $this->number]);
    }

    /** @return array<string, int> how often each event was seen by earlier starts */
    public function seen(): array
    {
        $seen = [];
        foreach ($this->database->stream('SELECT id, times FROM demo_events') as $row) {
            $seen[$row['id']] = $row['times'];
        }

        return $seen;
    }

    /** @param array<string, int> $seen */
    public function save(array $seen, bool $finished): void
    {
        $this->database->transaction(function ($transaction) use ($seen, $finished): void {
            $transaction->execute('DELETE FROM demo_events');
            if (!$finished) {
                foreach ($seen as $id => $times) {
                    $transaction->execute('INSERT INTO demo_events (id, times) VALUES (?, ?)', [$id, $times]);
                }
            }
            $transaction->execute(
                'UPDATE demo_runs SET saved = true, sent = ?, finished = ? WHERE number = ?',
                [$this->sent, $finished, $this->number],
            );
        });
    }

    private static function begin(Database $database, int $number, int $commands): self
    {
        $database->execute('DELETE FROM demo_events');
        $database->execute('DELETE FROM customers');
        $database->execute(
            'INSERT INTO demo_runs (number, commands, sent, saved, finished) VALUES (?, ?, 0, false, false)',
            [$number, $commands],
        );

        return new self($database, $number, $commands, false, false);
    }

    private static function createTables(Database $database): void
    {
        $id = $database->driver() === Driver::Postgres ? 'uuid' : 'TEXT';
        $database->execute("CREATE TABLE IF NOT EXISTS customers (id {$id} PRIMARY KEY, name varchar NOT NULL, email varchar NOT NULL)");
        $database->execute("CREATE TABLE IF NOT EXISTS demo_events (id {$id} PRIMARY KEY, times integer NOT NULL)");
        $database->execute(
            'CREATE TABLE IF NOT EXISTS demo_runs (number integer PRIMARY KEY, commands integer NOT NULL,'
            . ' sent integer NOT NULL, saved boolean NOT NULL, finished boolean NOT NULL)',
        );
    }
}
