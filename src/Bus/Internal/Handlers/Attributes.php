<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Handlers;

use Weft\Bus\Batch;
use Weft\Bus\Internal\Validation\MessageValidation;
use Weft\Bus\RateLimit;
use Weft\Bus\Retry;
use Weft\Bus\Timeout;
use Weft\Validation\Validate;
use Weft\Validation\Validator;

/**
 * The attributes that apply to a handler: those of its method, then of its class, then of the message class.
 *
 * @internal
 */
final class Attributes
{
    /**
     * @param list<Retry> $retries the first that fits an exception decides
     * @param float|null  $timeout seconds; null for what the bus was told
     * @param Batch|null  $batch   null takes one message at a time
     */
    public function __construct(
        public readonly array $retries = [],
        public readonly ?float $timeout = null,
        public readonly ?Batch $batch = null,
        public readonly ?RateLimit $rateLimit = null,
        public readonly ?MessageValidation $validation = null,
    ) {}

    /**
     * @param \ReflectionClass<object> $class of the service or saga, which may inherit the method
     * @param class-string   $message
     * @param Validator|null $validator null for symfony/validator
     *
     * @throws \Weft\Bus\InvalidHandlerError
     */
    public static function of(\ReflectionMethod $method, \ReflectionClass $class, string $message, ?Validator $validator): self
    {
        $places = [$method, $class, new \ReflectionClass($message)];
        $validate = self::first(Validate::class, $places);

        return new self(
            self::all(Retry::class, $places),
            self::first(Timeout::class, $places)?->seconds,
            self::first(Batch::class, [$method]),
            self::first(RateLimit::class, [$method, $class]),
            $validate === null ? null : MessageValidation::of($validate, $validator, HandlerName::of($class, $method)),
        );
    }

    /**
     * @template T of object
     *
     * @param class-string<T>                                       $attribute
     * @param list<\ReflectionMethod|\ReflectionClass<object>> $places
     * @return list<T>
     */
    private static function all(string $attribute, array $places): array
    {
        $found = [];
        foreach ($places as $place) {
            foreach ($place->getAttributes($attribute) as $one) {
                $found[] = $one->newInstance();
            }
        }

        return $found;
    }

    /**
     * @template T of object
     *
     * @param class-string<T>                                       $attribute
     * @param list<\ReflectionMethod|\ReflectionClass<object>> $places
     * @return T|null
     */
    private static function first(string $attribute, array $places): ?object
    {
        return self::all($attribute, $places)[0] ?? null;
    }
}
