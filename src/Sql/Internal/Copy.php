<?php

declare(strict_types=1);

namespace Weft\Sql\Internal;

use Weft\Native\SqlCopyIn;
use Weft\Native\SqlCopyOut;
use Weft\Runtime\Internal\WaitsFor;
use Weft\Sql\InvalidParameterException;

/**
 * The data of a `COPY`, a chunk at a time. An exception while it is made, a cancelled task and a loop that is left end the
 * `COPY` on the server.
 *
 * @internal
 */
final class Copy
{
    /** @param list<string> $columns */
    public static function statement(string $table, array $columns): string
    {
        $quote = static fn (string $name): string => '"' . \str_replace('"', '""', $name) . '"';
        $names = $columns === [] ? '' : ' (' . \implode(', ', \array_map($quote, $columns)) . ')';

        return 'COPY ' . \implode('.', \array_map($quote, \explode('.', $table))) . "{$names} FROM STDIN";
    }

    /** @param iterable<string> $chunks */
    #[WaitsFor('the rows of a COPY to be sent')]
    public static function chunks(SqlCopyIn $copy, iterable $chunks, ?HookRunner $hookRunner): int
    {
        $number = 0;
        try {
            foreach ($chunks as $chunk) {
                $number++;
                self::requireString($chunk, $number);
                if ($copy->write($chunk)) {
                    HookRunner::through($hookRunner, $copy->send());
                }
            }

            return HookRunner::through($hookRunner, $copy->finish());
        } finally {
            $copy->close();
        }
    }

    private static function requireString(mixed $chunk, int $number): void
    {
        \is_string($chunk) || throw new InvalidParameterException("chunk {$number} of the data must be a string, got " . \get_debug_type($chunk));
    }

    /**
     * @param string $table for errors
     * @param list<string> $columns
     * @param iterable<array<int|string, mixed>> $rows
     */
    #[WaitsFor('the rows of a COPY to be sent')]
    public static function rows(SqlCopyIn $copy, string $table, array $columns, iterable $rows, ?HookRunner $hookRunner): int
    {
        $number = 0;
        $row = [];
        try {
            foreach ($rows as $row) {
                $number++;
                if ($copy->row(\array_is_list($row) ? $row : self::ordered($row, $columns, $number), $number)) {
                    HookRunner::through($hookRunner, $copy->send());
                }
            }

            return HookRunner::through($hookRunner, $copy->finish());
        } catch (\TypeError $error) {
            // array_is_list() has thrown it: a check of each row would cost time.
            /** @var mixed $given */
            $given = $row;
            throw \is_array($given) ? $error : new InvalidParameterException("row {$number} for the table \"{$table}\" must be an array of its values, got " . \get_debug_type($given));
        } finally {
            $copy->close();
        }
    }

    /** @return \Generator<int, string> */
    #[WaitsFor('the rows of a COPY')]
    public static function out(SqlCopyOut $copy, ?HookRunner $hookRunner): \Generator
    {
        try {
            /** @var string|null $chunk */
            while (($chunk = HookRunner::through($hookRunner, $copy->next())) !== null) {
                yield $chunk;
            }
        } finally {
            $copy->close();
        }
    }

    /**
     * @param array<int|string, mixed> $row
     * @param list<string> $columns
     *
     * @return list<mixed>
     */
    private static function ordered(array $row, array $columns, int $number): array
    {
        $values = [];
        foreach ($columns as $column) {
            if (!\array_key_exists($column, $row)) {
                throw new InvalidParameterException("row {$number} has no value for column \"{$column}\"");
            }
            $values[] = $row[$column];
        }
        if (\count($row) !== \count($columns)) {
            $unknown = \implode('", "', \array_map(\strval(...), \array_diff(\array_keys($row), $columns)));
            throw new InvalidParameterException("row {$number} has values that belong to no column: \"{$unknown}\"");
        }

        return $values;
    }
}
