<?php

declare(strict_types=1);

namespace Weft\Examples\Rinha;

/** A term is found in a nickname, a name or a skill, in any case; what is a wildcard to SQL is a character like any other. */
final class Search
{
    /** Follows each field, so that a term never matches the end of one and the beginning of the next. */
    private const SEPARATOR = "\x1F";
    private const INSTEAD = "\x1E";

    /** What is stored to be searched. */
    public static function text(Person $person): string
    {
        $text = '';
        foreach ([$person->nickname, $person->name, ...$person->stack ?? []] as $field) {
            $text .= self::fold($field) . self::SEPARATOR;
        }

        return $text;
    }

    /** The pattern for LIKE. */
    public static function pattern(string $term): string
    {
        return '%' . \addcslashes(self::fold($term), '\\%_') . '%';
    }

    private static function fold(string $text): string
    {
        return \strtr(\mb_strtolower($text), self::SEPARATOR, self::INSTEAD);
    }
}
