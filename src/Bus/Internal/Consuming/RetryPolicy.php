<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Consuming;

use Weft\Bus\ClaimLost;
use Weft\Bus\CrashedTooOften;
use Weft\Bus\DuplicateMessageId;
use Weft\Bus\Internal\Handlers\Handler;
use Weft\Bus\InvalidMessageClass;
use Weft\Bus\MessageDecodingFailed;
use Weft\Bus\MessageEncodingFailed;
use Weft\Bus\NoHandler;
use Weft\Bus\Recoverable;
use Weft\Bus\Retry;
use Weft\Bus\Saga\SagaConflict;
use Weft\Bus\TransactionFinished;
use Weft\Bus\UnknownMessageType;
use Weft\Bus\Unrecoverable;
use Weft\Lock\LockException;
use Weft\Sql\ConnectionFailed;
use Weft\Sql\ConnectionLost;
use Weft\Sql\LockNotAvailable;
use Weft\Sql\PoolExhausted;
use Weft\Sql\TransactionAborted;

/**
 * Decides which failures of which handlers are retried.
 *
 * @internal
 */
final class RetryPolicy
{
    private const FINAL = [
        Unrecoverable::class, MessageDecodingFailed::class, MessageEncodingFailed::class, InvalidMessageClass::class, NoHandler::class,
        UnknownMessageType::class, TransactionFinished::class, DuplicateMessageId::class, CrashedTooOften::class, ClaimLost::class,
    ];

    private const TRANSIENT = [Recoverable::class, LockException::class, TransactionAborted::class, LockNotAvailable::class, ConnectionLost::class, ConnectionFailed::class, PoolExhausted::class];

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

    /** @return Retry|null null when the message is to be parked */
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

        if ($thrown instanceof SagaConflict) {
            return $this->conflict;
        }

        return $this->transient->matches($thrown) || DatabaseOutage::isOne($thrown) ? $this->default : null;
    }
}
