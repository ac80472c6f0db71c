<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Saga;

use Weft\Bus\Internal\Clock;
use Weft\Bus\Internal\MessageKind;
use Weft\Bus\Internal\Persistence\DelayedMessages;
use Weft\Bus\Internal\Sending\EnvelopeFactory;
use Weft\Bus\Saga\SagaConflictException;
use Weft\Bus\Saga\SagaEnded;
use Weft\Bus\Saga\SagaStatus;
use Weft\Sql\Transaction;

/**
 * Ends the sagas that have expired and publish events, so that each expiry is published once. Other sagas expire by their time alone.
 *
 * @internal
 */
final class ExpiredSagas
{
    /** Sagas that are ended with one query for them. */
    private const BATCH_SIZE = 100;

    public function __construct(
        private readonly SagaCompiler $sagas,
        private readonly DelayedMessages $delayed,
        private readonly EnvelopeFactory $envelopes,
    ) {}

    /** @return int how many sagas were ended */
    public function end(): int
    {
        $names = \array_keys(\array_filter($this->sagas->definitions, static fn(SagaDefinition $definition, string $name): bool => $definition->options->publishEvents && $definition->name === $name, \ARRAY_FILTER_USE_BOTH));
        $store = $this->sagas->store;
        if ($names === [] || $store === null) {
            return 0;
        }
        $this->sagas->prepare();
        $ended = 0;
        foreach ($names as $name) {
            do {
                $rows = $store->expired((string) $name, (int) (Clock::now() * 1000), self::BATCH_SIZE);
                foreach ($rows as $row) {
                    $ended += $this->publish($store, $row) ? 1 : 0;
                }
            } while (\count($rows) === self::BATCH_SIZE);
        }

        return $ended;
    }

    /** @return bool false when a message or another process has changed the saga meanwhile */
    private function publish(SagaStore $store, SagaRow $row): bool
    {
        $previous = $row->status;
        $row->end(SagaStatus::Expired, '');
        $row->endedAt = $row->expiresAt;
        $event = $this->envelopes->wrap(MessageKind::Event, new SagaEnded($row->saga, $row->id, SagaStatus::Expired, '', $previous), null);
        try {
            $store->database->transaction(function (Transaction $transaction) use ($store, $row, $event): void {
                $store->save($transaction, $row);
                $this->delayed->add($transaction, $event, Clock::now());
            });
        } catch (SagaConflictException) {
            return false;
        }
        $this->delayed->earlier->notify();

        return true;
    }
}
