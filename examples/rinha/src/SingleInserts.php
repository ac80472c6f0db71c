<?php

declare(strict_types=1);

namespace Weft\Examples\Rinha;

use Weft\Sql\Database;

/** Each person is a statement and a commit of its own, on one of the pool's connections. */
final class SingleInserts implements Inserts
{
    private const INSERT = <<<'SQL'
        INSERT INTO pessoas (id, apelido, nome, nascimento, stack, busca)
        VALUES (?, ?, ?, ?, ?, ?)
        ON CONFLICT (apelido) DO NOTHING
        SQL;

    public function __construct(private readonly Database $database)
    {
    }

    public function add(Person $person): string
    {
        $id = Uuid::next();
        $values = [$id, $person->nickname, $person->name, $person->birthday, $person->stackJson(), Search::text($person)];
        $stored = $this->database->execute(self::INSERT, $values)->affected();

        return $stored === 1 ? $id : throw Unacceptable::taken($person->nickname);
    }
}
