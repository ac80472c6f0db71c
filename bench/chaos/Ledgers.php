<?php

declare(strict_types=1);

namespace Weft\Bench\Chaos\Work;

use Weft\Bus\CommandHandler;
use Weft\Bus\Context;
use Weft\Bus\EventListener;
use Weft\Bus\Retry;
use Weft\Bus\SendOptions;
use Weft\Sql\Transaction;

/** Two tables without keys, which would hide an effect that happens twice. */
final class Ledgers
{
    #[CommandHandler]
    #[Retry(immediate: 1, delayed: 3, delay: 0.2, maxDelay: 1.0)]
    public function transfer(Transfer $command, Transaction $transaction, Context $context): void
    {
        $transaction->execute('INSERT INTO transfers (number) VALUES (?)', [$command->number]);
        $context->publish(new Transferred($command->number), new SendOptions(delay: $command->manner === Transfer::LATER ? 0.5 : null));
        if ($command->manner === Transfer::CRASH) {
            posix_kill(getmypid(), SIGKILL);
        }
        if ($command->manner === Transfer::POISON || ($command->manner === Transfer::STUMBLE && $context->failedAttempts() === 0)) {
            throw new \DomainException("transfer {$command->number} is meant to fail");
        }
    }

    #[EventListener]
    public function booked(Transferred $event, Transaction $transaction): void
    {
        $transaction->execute('INSERT INTO bookings (number, listener) VALUES (?, 1)', [$event->number]);
    }

    #[EventListener]
    #[Retry(delayed: 3, delay: 0.1)]
    public function audited(Transferred $event, Transaction $transaction, Context $context): void
    {
        $transaction->execute('INSERT INTO bookings (number, listener) VALUES (?, 2)', [$event->number]);
        if ($event->number % 101 === 0 && $context->failedAttempts() === 0) {
            throw new \DomainException('the auditor is late');
        }
    }
}
