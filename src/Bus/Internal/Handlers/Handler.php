<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Handlers;

use Weft\Bus\Internal\Codec\MessageClass;
use Weft\Bus\Internal\MessageKind;

/**
 * A compiled handler.
 *
 * @internal
 */
final class Handler
{
    /**
     * @param string                                                                $name          `Class::method`
     * @param bool                                                                  $transactional whether it takes a Transaction
     * @param \Closure $invoke takes the message, the Context and a Transaction or null; of a batch handler it takes a
     *        list of \Weft\Bus\BatchItem and the transaction
     * @param (\Closure(object, array<string, string>): ?string)|null $turn names what its messages are about: this process handles
     *        those of one name one at a time
     * @param string|null $formerName see {@see HandlerName::former()}
     */
    public function __construct(
        public readonly string $name,
        public readonly MessageKind $kind,
        public readonly MessageClass $message,
        public readonly bool $transactional,
        public readonly \Closure $invoke,
        public readonly Attributes $attributes = new Attributes(),
        public readonly ?\Closure $turn = null,
        public readonly ?string $formerName = null,
    ) {}

    public function invokedBy(\Closure $invoke): self
    {
        return new self($this->name, $this->kind, $this->message, $this->transactional, $invoke, $this->attributes, $this->turn, $this->formerName);
    }
}
