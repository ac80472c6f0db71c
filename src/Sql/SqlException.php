<?php

declare(strict_types=1);

namespace Weft\Sql;

use Weft\Exception;
use Weft\Internal\Documented;

/**
 * A statement, a transaction or a connection failed. Catch a subclass for the cause.
 *
 * Messages contain the statement's text, never the value of a parameter.
 */
class SqlException extends \RuntimeException implements Exception
{
    use Documented;

    /**
     * @param string|null $sqlState five characters, where a database reported the error
     * @param string|null $constraint the violated constraint, where the database names it
     * @param int|null $item which item of {@see Connection::executeMany()} failed, counted from 0
     * @param string|null $givenAt `file:line` where a deferred statement of a {@see Transaction} was given, which fails later;
     *     the message has it too
     * @param int $code MySQL's error number, SQLite's extended result code, otherwise 0
     */
    final public function __construct(
        string $message,
        public readonly ?string $sqlState = null,
        public readonly ?string $statement = null,
        public readonly ?string $constraint = null,
        ?\Throwable $previous = null,
        public readonly ?int $item = null,
        public readonly ?string $givenAt = null,
        int $code = 0,
    ) {
        parent::__construct($message, $code, $previous);
    }
}
