/// The syntax of a driver's positional parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// `$1`; dollar-quoted strings, `E''` strings, nested comments, `::` casts.
    Postgres,
    /// `?1`; backtick and bracket identifiers.
    Sqlite,
    /// `?`; backtick identifiers, backslashes that escape, `#` comments, `--` comments only before white space.
    Mysql,
}
