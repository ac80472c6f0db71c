<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Validation;

use Weft\Bus\Context;
use Weft\Bus\Encrypted;
use Weft\Bus\InvalidHandlerError;
use Weft\Bus\InvalidMessageEvent;
use Weft\Bus\InvalidMessageException;
use Weft\Sql\Transaction;
use Weft\Validation\Internal\SymfonyValidator;
use Weft\Validation\Validate;
use Weft\Validation\Validator;

/**
 * Validates messages before a handler.
 *
 * @internal
 */
final class MessageValidation
{
    public function __construct(
        private readonly Validate $rule,
        private readonly Validator $validator,
    ) {}

    /** @throws InvalidHandlerError when nothing can validate, or the event is none */
    public static function of(Validate $rule, ?Validator $validator, string $handler): self
    {
        if ($rule->event !== null && !\is_subclass_of($rule->event, InvalidMessageEvent::class)) {
            throw new InvalidHandlerError("Handler {$handler}() has #[Validate(event: …)]: the event must implement " . InvalidMessageEvent::class . ", {$rule->event} does not");
        }
        $validator ??= SymfonyValidator::isInstalled() ? new SymfonyValidator(self::isEncrypted(...)) : throw new InvalidHandlerError(
            "Handler {$handler}() has #[Validate], but no validator is available: install symfony/validator or pass a Validator to Bus::connect()",
        );

        return new self($rule, $validator);
    }

    /**
     * @param \Closure(object, Context, ?Transaction): mixed $invoke
     * @return \Closure(object, Context, ?Transaction): mixed
     */
    public function around(\Closure $invoke): \Closure
    {
        return fn(object $message, Context $context, ?Transaction $transaction): mixed => $this->accepts($message, $context)
            ? $invoke($message, $context, $transaction)
            : null;
    }

    /**
     * @return bool whether the handler is to be called
     * @throws InvalidMessageException
     */
    public function accepts(object $message, Context $context): bool
    {
        $violations = $this->validator->validate($message, $this->rule->groups);
        if ($violations === []) {
            return true;
        }
        if ($this->rule->passOn) {
            $context->found($violations);

            return true;
        }
        if ($this->rule->event === null) {
            throw InvalidMessageException::because($message, $violations);
        }
        /** @var class-string<InvalidMessageEvent> $event */
        $event = $this->rule->event;
        $context->publish($event::of($message, ...$violations));

        return false;
    }

    private static function isEncrypted(\ReflectionProperty $property): bool
    {
        return $property->getAttributes(Encrypted::class) !== [];
    }
}
