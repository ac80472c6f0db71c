<?php

declare(strict_types=1);

namespace Weft\Examples\Rinha;

use Weft\Sql\Database;

/** Everybody, in PostgreSQL and nowhere else: nothing is cached, and nothing is written later. */
final class People
{
    private const MOST_FOUND = 50;
    private const COLUMNS = 'id::text, apelido, nome, nascimento::text, stack';

    public function __construct(private readonly Database $database, private readonly Inserts $inserts)
    {
    }

    /**
     * @return string the id of the person, who is stored
     *
     * @throws Unacceptable when somebody has the nickname
     */
    public function add(Person $person): string
    {
        return $this->inserts->add($person);
    }

    /** @return string|null the person as JSON */
    public function find(string $id): ?string
    {
        if (!Uuid::isValid($id)) {
            return null;
        }
        $row = $this->database->execute('SELECT ' . self::COLUMNS . ' FROM pessoas WHERE id = ?', [$id])->first();

        return $row === null ? null : self::json($row);
    }

    /** @return string at most 50 people as JSON, in no order */
    public function search(string $term): string
    {
        // Neither can be part of a text in PostgreSQL, so nobody has it.
        if (\str_contains($term, "\0") || !\mb_check_encoding($term)) {
            return '[]';
        }
        $sql = 'SELECT ' . self::COLUMNS . ' FROM pessoas WHERE busca LIKE ? LIMIT ' . self::MOST_FOUND;
        $rows = $this->database->execute($sql, [Search::pattern($term)])->rows();

        return '[' . \implode(',', \array_map(self::json(...), $rows)) . ']';
    }

    public function count(): int
    {
        return $this->database->execute('SELECT count(*) FROM pessoas')->value();
    }

    /** @param array{id: string, apelido: string, nome: string, nascimento: string, stack: string|null} $row */
    private static function json(array $row): string
    {
        $stack = $row['stack'] ?? 'null';
        unset($row['stack']);
        $fields = \json_encode($row, \JSON_UNESCAPED_UNICODE | \JSON_UNESCAPED_SLASHES | \JSON_THROW_ON_ERROR);

        return \substr($fields, 0, -1) . ",\"stack\":{$stack}}";
    }
}
