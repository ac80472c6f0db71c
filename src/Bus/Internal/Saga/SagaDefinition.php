<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Saga;

use Weft\Bus\Internal\Codec\MessageClass;
use Weft\Bus\MessageDecodingException;
use Weft\Bus\Saga\Saga;
use Weft\Bus\Saga\InvalidSagaStateException;

/**
 * The options of a saga class and the codec of its properties.
 *
 * @internal
 */
final class SagaDefinition
{
    public readonly string $name;

    /** @param list<string> $ids names of the properties and headers whose values are ids; those of others are associated */
    public function __construct(
        public readonly Saga $options,
        private readonly MessageClass $state,
        private readonly array $ids,
    ) {
        $this->name = $state->type;
    }

    /** Whether the values of a property or header are ids of sagas. */
    public function identifies(string $name): bool
    {
        return \in_array($name, $this->ids, true);
    }

    public function start(string $id): SagaRow
    {
        return SagaRow::start($this->name, $id, $this->state->version, $this->options->expires);
    }

    /** A new saga, or one with the state of its row. */
    public function restore(SagaRow $row): object
    {
        if ($row->version === 0) {
            return new ($this->state->class)();
        }
        if ($row->schema > $this->state->version) {
            throw new InvalidSagaStateException("Saga {$row->saga} \"{$row->id}\" was stored by version {$row->schema} of {$this->state->class}, the class is now version {$this->state->version}");
        }
        try {
            return $this->state->decode($row->state);
        } catch (MessageDecodingException $failed) {
            throw new InvalidSagaStateException("The state of saga {$row->saga} \"{$row->id}\" no longer matches its class: {$failed->getMessage()}", $failed);
        }
    }

    /** @return bool whether its properties have changed */
    public function remember(SagaRow $row, object $saga): bool
    {
        $before = $row->state;
        $row->state = $this->state->encode($saga);
        $row->schema = $this->state->version;

        return $before !== $row->state;
    }
}
