<?php

declare(strict_types=1);

namespace Weft\Examples\Rinha;

use Weft\Runtime\Channel;
use Weft\Sql\Database;
use Weft\Sql\DeadlockException;

use function Weft\detach;

/** All people that arrive while one statement is on its way go into the next one: they share a round trip and a commit. */
final class SharedInserts implements Inserts
{
    private const MOST_AT_A_TIME = 200;
    /** In the order of the unique column, so that two instances never wait for each other in a circle. */
    private const INSERT = <<<'SQL'
        INSERT INTO pessoas (id, apelido, nome, nascimento, stack, busca)
        SELECT id, apelido, nome, nascimento, stack, busca
        FROM unnest(?::uuid[], ?::text[], ?::text[], ?::date[], ?::text[], ?::text[])
            AS person (id, apelido, nome, nascimento, stack, busca)
        ORDER BY apelido
        ON CONFLICT (apelido) DO NOTHING
        RETURNING id::text
        SQL;

    /** @var list<array{string, Person, Channel<bool|\Throwable>}> id, person, and where the one who waits is answered */
    private array $waiting = [];
    private bool $writing = false;

    public function __construct(private readonly Database $database)
    {
    }

    public function add(Person $person): string
    {
        $id = Uuid::next();
        $answer = new Channel(1);
        $this->waiting[] = [$id, $person, $answer];
        if (!$this->writing) {
            $this->writing = true;
            // A task of its own: the one that starts it is cancelled when its client goes away.
            detach($this->writeAll(...));
        }
        $stored = $answer->receive();

        return match (true) {
            $stored instanceof \Throwable => throw $stored,
            $stored => $id,
            default => throw Unacceptable::taken($person->nickname),
        };
    }

    private function writeAll(): void
    {
        try {
            while ($this->waiting !== []) {
                $this->write(\array_splice($this->waiting, 0, self::MOST_AT_A_TIME));
            }
        } finally {
            $this->writing = false;
        }
    }

    /** @param non-empty-list<array{string, Person, Channel<bool|\Throwable>}> $batch */
    private function write(array $batch): void
    {
        try {
            $stored = \array_flip($this->insert($batch));
            foreach ($batch as [$id, , $answer]) {
                $answer->send(isset($stored[$id]));
            }
        } catch (\Throwable $failure) {
            foreach ($batch as [, , $answer]) {
                $answer->send($failure);
            }
        }
    }

    /**
     * @param non-empty-list<array{string, Person, Channel<bool|\Throwable>}> $batch
     *
     * @return list<string> ids that were stored; the nickname of the others is taken
     */
    private function insert(array $batch): array
    {
        $people = \array_column($batch, 1);
        $columns = [
            \array_column($batch, 0),
            \array_column($people, 'nickname'),
            \array_column($people, 'name'),
            \array_column($people, 'birthday'),
            \array_map(static fn (Person $person): ?string => $person->stackJson(), $people),
            \array_map(Search::text(...), $people),
        ];
        try {
            return $this->database->execute(self::INSERT, $columns)->column();
        } catch (DeadlockException) {
            return $this->database->execute(self::INSERT, $columns)->column();
        }
    }
}
