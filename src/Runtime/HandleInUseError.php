<?php

declare(strict_types=1);

namespace Weft\Runtime;

use Weft\Exception;
use Weft\Internal\Documented;

/**
 * A task has used a connection, transfer or stream of a library in which another task waits.
 *
 * The call that is refused has had no effect, and the other task is not disturbed. Give each task a handle of its own, for example from a
 * {@see \Weft\Pool\Pool}.
 */
final class HandleInUseError extends \Error implements Exception
{
    use Documented;

    /**
     * @internal
     *
     * @param string $handle what is in use, such as `PDO #12 (pgsql:host=localhost;dbname=app)`, without password
     * @param string $call the call in which the other task waits, such as `PDO::query()`
     * @param ?TaskInfo $holder the other task, null if it is none of the running event loop
     */
    public function __construct(string $message, public readonly string $handle, public readonly string $call, public readonly ?TaskInfo $holder)
    {
        parent::__construct($message);
    }
}
