<?php

declare(strict_types=1);

namespace Weft\Sql\Internal;

use Weft\Sql\Driver;

/**
 * The comments of each dialect, as alternatives of a regular expression with the modifier `s`. Those that may stand before the first word of a
 * statement are skipped where its kind is told by that word.
 *
 * @internal
 */
final class Comment
{
    /** The end of the text ends a comment too. */
    public const SQLITE = '--[^\n]*+|\/\*.*?(?:\*\/|$)';

    /** Without those that begin with `/*!` or `/*M!`, which the server runs. */
    public const MYSQL = '(?:--|#)[^\n]*+|\/\*(?!M?!).*?\*\/';

    /** Comments in comments, as in the SQL standard. */
    public const POSTGRES = '--[^\n]*+|(?<comment>\/\*(?:[^\/*]++|\/(?!\*)|\*(?!\/)|(?&comment))*+\*\/)';

    public static function of(Driver $driver): string
    {
        return match ($driver) {
            Driver::Sqlite => self::SQLITE,
            Driver::Mysql => self::MYSQL,
            Driver::Postgres => self::POSTGRES,
        };
    }
}
