<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Consuming;

use Weft\Bus\ClaimLostException;
use Weft\Bus\CrashedTooOftenException;
use Weft\Bus\DuplicateMessageIdException;
use Weft\Bus\Internal\Handlers\Handler;
use Weft\Bus\InvalidMessageClassError;
use Weft\Bus\MessageDecodingException;
use Weft\Bus\MessageEncodingException;
use Weft\Bus\NoHandlerException;
use Weft\Bus\Recoverable;
use Weft\Bus\Retry;
use Weft\Bus\Saga\SagaConflictException;
use Weft\Bus\TransactionFinishedException;
use Weft\Bus\UnknownMessageTypeException;
use Weft\Bus\Unrecoverable;
use Weft\Lock\LockException;
use Weft\Sql\ConnectionException;
use Weft\Sql\ConnectionLostException;
use Weft\Sql\LockNotAvailableException;
use Weft\Pool\PoolExhaustedException;
use Weft\Sql\TransactionAbortedException;

/**
 * Decides which failures of which handlers are retried.
 *
 * @internal
 */
final class RetryPolicy
{
    private const FINAL = [
        Unrecoverable::class, MessageDecodingException::class, MessageEncodingException::class, InvalidMessageClassError::class, NoHandlerException::class,
        UnknownMessageTypeException::class, TransactionFinishedException::class, DuplicateMessageIdException::class, CrashedTooOftenException::class, ClaimLostException::class,
    ];

    private const TRANSIENT = [Recoverable::class, LockException::class, TransactionAbortedException::class, LockNotAvailableException::class, ConnectionLostException::class, ConnectionException::class, PoolExhaustedException::class];

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
        foreach (self::FINAL as $class) {
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

        return $this->transient->matches($thrown) || DatabaseOutage::isOne($thrown) ? $this->default : null;
    }
}
