<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

/**
 * Says for what a function of the library waits while it awaits an operation of the extension.
 *
 * It completes the sentence "the task waits for …" in task lists and deadlock reports, which read it on demand: a running task pays nothing
 * for it. `{name}` stands for a property of the object.
 *
 * @internal
 */
#[\Attribute(\Attribute::TARGET_METHOD | \Attribute::TARGET_FUNCTION)]
final class WaitsFor
{
    public function __construct(private readonly string $subject)
    {
    }

    /** Whether it names one object among several: then it says more than the name of a function. */
    public function isNamed(): bool
    {
        return \str_contains($this->subject, '{');
    }

    /** @param ?object $object whose method waits */
    public function describe(?object $object): string
    {
        return (string) \preg_replace_callback(
            '/\{(\w+)\}/',
            static fn(array $match): string => $object === null ? '' : (string) (new \ReflectionProperty($object, $match[1]))->getValue($object),
            $this->subject,
        );
    }
}
