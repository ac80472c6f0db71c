<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Consuming;

use Weft\Bus\BusException;
use Weft\Bus\ClaimLostException;
use Weft\Bus\CrashedTooOftenException;
use Weft\Bus\DuplicateMessageIdException;
use Weft\Bus\Internal\Handlers\Handler;
use Weft\Bus\Internal\MessageKind;
use Weft\Bus\InvalidMessageClassError;
use Weft\Bus\MessageDecodingException;
use Weft\Bus\MessageEncodingException;
use Weft\Bus\NoHandlerException;
use Weft\Bus\PublishException;
use Weft\Bus\Recoverable;
use Weft\Bus\RequestFailedException;
use Weft\Bus\RequestTimeoutException;
use Weft\Bus\Retry;
use Weft\Bus\Saga\SagaConflictException;
use Weft\Bus\TransactionFinishedException;
use Weft\Bus\TransportException;
use Weft\Bus\UnknownMessageTypeException;
use Weft\Bus\Unrecoverable;
use Weft\Lock\LockException;
use Weft\Sql\CheckViolationException;
use Weft\Sql\ConnectionException;
use Weft\Sql\ConnectionLostException;
use Weft\Sql\DataException;
use Weft\Sql\InvalidParameterException;
use Weft\Sql\InvalidStatementException;
use Weft\Sql\LockNotAvailableException;
use Weft\Sql\NotNullViolationException;
use Weft\Pool\PoolExhaustedException;
use Weft\Sql\SyntaxErrorException;
use Weft\Sql\TransactionAbortedException;
use Weft\Sql\UndefinedColumnException;
use Weft\Sql\UndefinedTableException;
use Weft\Sql\UniqueViolationException;

/**
 * Decides which failures of which handlers are retried.
 *
 * @internal
 */
final class RetryPolicy
{
    private const UNRECOVERABLE = [
        Unrecoverable::class, MessageDecodingException::class, MessageEncodingException::class, InvalidMessageClassError::class, NoHandlerException::class,
        UnknownMessageTypeException::class, TransactionFinishedException::class, DuplicateMessageIdException::class, CrashedTooOftenException::class, ClaimLostException::class,
    ];

    private const TRANSIENT = [Recoverable::class, LockException::class, TransactionAbortedException::class, LockNotAvailableException::class, ConnectionLostException::class, ConnectionException::class, PoolExhaustedException::class];

    /** Failures of the bus itself that another attempt may resolve. */
    private const RECOVERABLE_BUS_FAILURES = [PublishException::class, TransportException::class, RequestFailedException::class, RequestTimeoutException::class];

    /**
     * Mistakes in the program or in the data: another attempt fails as well. A violated foreign key is none of them, because the row it names
     * may be on its way.
     */
    private const USAGE_ERRORS = [
        \Error::class, \LogicException::class,
        UniqueViolationException::class, NotNullViolationException::class, CheckViolationException::class, DataException::class,
        SyntaxErrorException::class, UndefinedTableException::class, UndefinedColumnException::class, InvalidStatementException::class, InvalidParameterException::class,
    ];

    private readonly Retry $transient;

    /** Each conflict means that another message has succeeded, so all messages of a saga succeed eventually. */
    private readonly Retry $conflict;

    public function __construct(private readonly Retry $default)
    {
        $this->transient = new Retry(on: self::TRANSIENT);
        $this->conflict = new Retry(immediate: 20, delayed: 10, delay: 0.1, jitter: 1.0);
    }

    /** Whether the failure is caused by the message itself and would happen again. */
    public static function isFinal(\Throwable $thrown): bool
    {
        foreach (self::UNRECOVERABLE as $class) {
            if ($thrown instanceof $class) {
                return true;
            }
        }

        return false;
    }

    /** @return Retry|null null when the message is to be dead-lettered */
    public function of(Handler $handler, \Throwable $thrown): ?Retry
    {
        if (self::isFinal($thrown)) {
            return null;
        }
        foreach ($handler->attributes->retries as $retry) {
            if ($retry->matches($thrown)) {
                return $retry;
            }
        }

        if ($thrown instanceof SagaConflictException) {
            return $this->conflict;
        }

        return $this->isRetried($handler, $thrown) ? $this->default : null;
    }

    /**
     * The default for a handler without rules of its own: everything is retried but mistakes in the program, which fail again. A sender
     * waits for the answer of a query, so only failures that are known to be transient are retried there.
     */
    private function isRetried(Handler $handler, \Throwable $thrown): bool
    {
        if ($this->transient->matches($thrown) || DatabaseOutage::isOne($thrown)) {
            return true;
        }
        if ($thrown instanceof BusException) {
            return \in_array($thrown::class, self::RECOVERABLE_BUS_FAILURES, true) && !($thrown instanceof PublishException && $thrown->refused);
        }

        foreach (self::USAGE_ERRORS as $class) {
            if ($thrown instanceof $class) {
                return false;
            }
        }

        return $handler->kind !== MessageKind::Query && $this->default->matches($thrown);
    }
}
