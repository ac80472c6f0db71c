<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Saga;

use Psr\Log\LogLevel;
use Weft\Bus\Context;
use Weft\Bus\Saga\SagaContext;
use Weft\Bus\Saga\SagaEnded;
use Weft\Bus\Saga\SagaExistsException;
use Weft\Bus\Saga\SagaNotFoundException;
use Weft\Bus\Saga\SagaNotStartedException;
use Weft\Bus\Saga\SagaAlreadyEndedException;
use Weft\Bus\Saga\SagaStarted;
use Weft\Bus\Saga\SagaStatus;
use Weft\Bus\Saga\UnmatchedPolicy;
use Weft\Bus\Unrecoverable;
use Weft\Runtime\Internal\CallScope;
use Weft\Sql\Transaction;

/**
 * Loads the saga of a message, calls its method and stores it, all in the handler's transaction.
 *
 * @internal
 */
final class SagaInvoker
{
    /**
     * @param \Closure(object, object, SagaContext): mixed $call the method, with saga, message and the rest
     * @param bool                                          $acts whether the method can have effects of its own in the database
     */
    public function __construct(
        private readonly SagaDefinition $definition,
        private readonly SagaMethod $role,
        private readonly Correlation $correlation,
        private readonly SagaStore $store,
        private readonly \Closure $call,
        private readonly bool $acts,
    ) {}

    public function __invoke(object $message, Context $context, ?Transaction $transaction): mixed
    {
        \assert($transaction !== null);
        $value = $this->correlation->of($message, $context);
        $by = $this->correlation->name;
        $row = $this->definition->identifies($by)
            ? $this->store->byId($transaction, $this->definition->name, $value)
            : $this->store->byAssociation($transaction, $this->definition->name, $by, $value);
        $row = $this->admit($row, $value, $context);

        return $row === null ? null : $this->take($row, $message, new SagaContext($context, $transaction, $this->store, $row, $this->definition));
    }

    /** The row of the saga that handles the message; null if the message is ignored. */
    private function admit(?SagaRow $row, string $value, Context $context): ?SagaRow
    {
        $name = "Saga {$this->definition->name} " . ($row === null && !$this->definition->identifies($this->correlation->name) ? "with {$this->correlation->name} \"{$value}\"" : '"' . ($row->id ?? $value) . '"');
        $status = $row?->status();
        if ($row === null && $this->role->starts) {
            return $this->definition->start($value);
        }
        if ($status?->isOpen() && $this->role->joinExisting) {
            return $row;
        }
        $message = "message {$context->messageId()} of type {$context->type()}";
        if ($this->role->times) {
            // The usual case: a timeout that was not needed.
            return self::ignore($context, "{$name} has ended, its timeout has no effect: {$message}", LogLevel::DEBUG);
        }

        return match (true) {
            $row === null => self::refuse($this->role->missing, $context, "{$name} was not started or has been deleted, and received {$message}", SagaNotFoundException::class),
            !$this->role->joinExisting => self::refuse($this->role->existing, $context, "{$name} is {$status?->value} already and cannot be started again by {$message}", SagaExistsException::class),
            $status === SagaStatus::Expired => self::refuse($this->definition->options->expired, $context, "{$name} has expired on {$row->record()->endedAt?->format('Y-m-d H:i:s')} UTC and received {$message}", SagaAlreadyEndedException::class),
            default => self::refuse($this->definition->options->ended, $context, "{$name} has {$status?->value}" . ($row->reason === '' ? '' : " ({$row->reason})") . " and received {$message}", SagaAlreadyEndedException::class),
        };
    }

    /** @param class-string<SagaNotFoundException|SagaExistsException|SagaAlreadyEndedException> $class */
    private static function refuse(UnmatchedPolicy $answer, Context $context, string $why, string $class): null
    {
        return match ($answer) {
            UnmatchedPolicy::DeadLetter => throw new $class($why),
            UnmatchedPolicy::Retry => throw new SagaNotStartedException($why),
            UnmatchedPolicy::Ignore => self::ignore($context, $why),
        };
    }

    private static function ignore(Context $context, string $why, string $level = LogLevel::INFO): null
    {
        $context->logger()->log($level, 'Ignored: {why}', ['why' => $why]);

        return null;
    }

    private function take(SagaRow $row, object $message, SagaContext $context): mixed
    {
        $isNew = $row->version === 0;
        [$status, $expiresAt] = [$row->status, $row->expiresAt];
        $saga = $this->definition->restore($row);
        // Before the state is read from the saga: the tasks that the method has started may change it, too.
        $returned = CallScope::call($this->call, $saga, $message, $context);
        $this->announce($isNew, $row, $status, $context);
        $hasChanged = $this->definition->remember($row, $saga) || $row->status !== $status || $row->expiresAt !== $expiresAt;
        // Its actions depend on the state it has read, so the version is checked even if the state is unchanged.
        if ($isNew || $hasChanged || $this->acts || $context->hasActed()) {
            $this->store->save($context->transaction(), $row);
        }

        return $returned;
    }

    private function announce(bool $isNew, SagaRow $row, SagaStatus $previous, SagaContext $context): void
    {
        if (!$this->definition->options->publishEvents) {
            return;
        }
        if ($isNew) {
            $context->publish(new SagaStarted($row->saga, $row->id));
        }
        if ($row->endedAt !== null) {
            $context->publish(new SagaEnded($row->saga, $row->id, $row->status, $row->reason, $previous));
        }
    }
}
