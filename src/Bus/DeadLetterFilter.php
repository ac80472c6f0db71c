<?php

declare(strict_types=1);

namespace Weft\Bus;

/** Selects dead letters that match all given criteria, none of which may be empty; without any it matches every dead letter. */
final class DeadLetterFilter
{
    /**
     * @param string|null $id      message id
     * @param string|null $type    message type name
     * @param string|null $error   class of the error, with or without namespace, or a part of its message
     * @param string|null $handler `Class::method` of a failed handler, or the end of it
     */
    public function __construct(
        public readonly ?string $id = null,
        public readonly ?string $type = null,
        public readonly ?string $error = null,
        public readonly ?string $handler = null,
    ) {
        foreach (['id' => $id, 'type' => $type, 'error' => $error, 'handler' => $handler] as $criterion => $text) {
            $text !== '' || throw new \ValueError("The {$criterion} of a dead-letter filter must not be empty, which would match others than meant; null is for any");
        }
    }

    /** Whether the filter matches every dead letter. */
    public function isEmpty(): bool
    {
        return $this->id === null && $this->type === null && $this->error === null && $this->handler === null;
    }

    public function matches(DeadLetter $letter): bool
    {
        $handler = $this->handler;

        return ($this->id === null || $letter->messageId() === $this->id)
            && ($this->type === null || $letter->type === $this->type)
            && ($this->error === null || $this->matchesError($letter))
            && ($handler === null || \array_filter($letter->failedHandlers(), static fn(string $name): bool => \str_ends_with($name, $handler)) !== []);
    }

    private function matchesError(DeadLetter $letter): bool
    {
        $class = $letter->errorClass();

        return $class === $this->error
            || \str_ends_with($class, "\\{$this->error}")
            || \str_contains($letter->errorMessage(), (string) $this->error);
    }
}
