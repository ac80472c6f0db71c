<?php

declare(strict_types=1);

namespace Weft\Bench\Http;

/** The kinds of request. Every contender serves all of them. */
enum Workload: string
{
    public const BODY_BYTES = 100_000;
    public const FILE_BYTES = 16_384;

    case Hello = 'hello';
    case Json = 'json';
    case Query = 'query';
    /** That many statements, each for one row. */
    case Queries5 = 'queries-5';
    case Queries20 = 'queries-20';
    /** A row is read, changed and written back: two statements. */
    case Update = 'update';
    /** A small table, sorted and rendered by a template that escapes. */
    case Fortunes = 'fortunes';
    case Body = 'body';
    case File = 'static';

    public function path(): string
    {
        return match ($this) {
            self::Query => '/query?id=42',
            self::Queries5 => '/queries?count=5',
            self::Queries20 => '/queries?count=20',
            self::File => '/static/file.bin',
            default => "/{$this->value}",
        };
    }

    /** Whether this is the right answer, byte for byte; JSON may be spaced and ordered as the contender likes. */
    public function accepts(string $body): bool
    {
        return match ($this) {
            self::Hello => $body === 'Hello, World!',
            self::Json => json_decode($body, true) === ['message' => 'Hello, World!'],
            self::Query => self::isRow42(json_decode($body, true)),
            self::Queries5 => self::arePeople(json_decode($body, true), 5),
            self::Queries20 => self::arePeople(json_decode($body, true), 20),
            self::Update => self::isCounter(json_decode($body, true)),
            self::Fortunes => self::areFortunes($body),
            self::Body => $body === str_repeat('x', self::BODY_BYTES),
            self::File => $body === self::fileContents(),
        };
    }

    /** The same 16 KiB everywhere; not compressible. */
    public static function fileContents(): string
    {
        $block = '';
        for ($i = 0; strlen($block) < self::FILE_BYTES; ++$i) {
            $block .= hash('sha256', (string) $i, true);
        }

        return $block;
    }

    private static function isRow42(mixed $row): bool
    {
        return self::isPerson($row) && $row['id'] === 42;
    }

    private static function isPerson(mixed $row): bool
    {
        is_array($row) && ksort($row);
        $id = $row['id'] ?? null;

        return is_int($id) && $id >= 1 && $id <= People::ROWS && $row === ['email' => 'name@qwerty.root', 'id' => $id, 'name' => "name_$id"];
    }

    private static function arePeople(mixed $rows, int $count): bool
    {
        return is_array($rows) && array_is_list($rows) && count($rows) === $count && array_filter($rows, self::isPerson(...)) === $rows;
    }

    private static function isCounter(mixed $row): bool
    {
        is_array($row) && ksort($row);

        return is_array($row) && array_keys($row) === ['id', 'value'] && is_int($row['id']) && is_int($row['value']);
    }

    /** Whether the rows are there and sorted by message. How a character is escaped is the template's choice; that it is, is not. */
    private static function areFortunes(string $body): bool
    {
        if (!str_starts_with($body, '<!DOCTYPE html>') || str_contains($body, '<script>')) {
            return false;
        }
        preg_match_all('~<tr><td>(\d+)</td><td>([^<]*)</td></tr>~', $body, $rows, PREG_SET_ORDER);
        $found = array_map(static fn (array $row): array => [(int) $row[1], html_entity_decode($row[2], ENT_QUOTES | ENT_HTML5)], $rows);
        $expected = [[0, People::ADDED]];
        foreach (People::FORTUNES as $index => $message) {
            $expected[] = [$index + 1, $message];
        }
        usort($expected, static fn (array $a, array $b): int => strcmp($a[1], $b[1]));

        return $found === $expected;
    }
}
