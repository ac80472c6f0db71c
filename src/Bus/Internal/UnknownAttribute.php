<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

use Weft\Bus\Batch;
use Weft\Bus\CommandHandler;
use Weft\Bus\Encrypted;
use Weft\Bus\EventListener;
use Weft\Bus\Expires;
use Weft\Bus\FairBy;
use Weft\Bus\MessageType;
use Weft\Bus\OrderedBy;
use Weft\Bus\Priority;
use Weft\Bus\QueryHandler;
use Weft\Bus\RateLimit;
use Weft\Bus\Retry;
use Weft\Bus\Route;
use Weft\Bus\Saga\Saga;
use Weft\Bus\Saga\SagaListener;
use Weft\Bus\Saga\SagaStart;
use Weft\Bus\Saga\SagaTimeout;
use Weft\Bus\SerializedBy;
use Weft\Bus\Timeout;
use Weft\Bus\Upcaster;
use Weft\Validation\Validate;

/**
 * Detects attributes that are misspelt or not imported. PHP ignores attributes whose class does not exist.
 *
 * @internal
 */
final class UnknownAttribute
{
    private const KNOWN = [
        Batch::class, CommandHandler::class, Encrypted::class, EventListener::class, Expires::class, FairBy::class, MessageType::class,
        OrderedBy::class, Priority::class, QueryHandler::class, RateLimit::class, Retry::class, Route::class, Saga::class, SagaListener::class,
        SagaStart::class, SagaTimeout::class, SerializedBy::class, Timeout::class, Upcaster::class, Validate::class,
    ];

    /**
     * @param \ReflectionClass<object>|\ReflectionMethod|\ReflectionProperty $place
     * @return string|null what is wrong, to stand behind the name of the place
     */
    public static function on(\ReflectionClass|\ReflectionMethod|\ReflectionProperty $place): ?string
    {
        $class = $place instanceof \ReflectionClass ? $place : $place->getDeclaringClass();
        foreach ($place->getAttributes() as $attribute) {
            $name = $attribute->getName();
            if (!self::isOurs($name, $class->getNamespaceName()) || \class_exists($name)) {
                continue;
            }
            $meant = self::meant($name);
            if ($meant !== null || \str_starts_with($name, 'Weft\\Bus\\')) {
                return "is marked with #[{$name}], which is not a class. " . ($meant === null ? '' : "Is #[{$meant}] meant? ") . 'Check the spelling and the use statements';
            }
        }

        return null;
    }

    /** A name that is not imported resolves to the current namespace. Attributes of other libraries may be missing. */
    private static function isOurs(string $attribute, string $namespace): bool
    {
        $end = \strrpos($attribute, '\\');
        $own = $end === false ? '' : \substr($attribute, 0, $end);

        return $own === $namespace || \str_starts_with($own, 'Weft\\');
    }

    private static function meant(string $attribute): ?string
    {
        foreach (self::KNOWN as $known) {
            $name = self::short($known);
            if (\levenshtein(\strtolower(self::short($attribute)), \strtolower($name)) <= (\strlen($name) > 8 ? 2 : 1)) {
                return $known;
            }
        }

        return null;
    }

    private static function short(string $class): string
    {
        return \substr((string) \strrchr("\\{$class}", '\\'), 1);
    }
}
