<?php

declare(strict_types=1);

namespace Weft\Tests\Memory;

/** Runs a function of the test when the extension, or PHP on its behalf, converts it. */
final class Callback implements \JsonSerializable
{
    public function __construct(private readonly \Closure $function)
    {
    }

    public function jsonSerialize(): mixed
    {
        return ($this->function)();
    }

    public function __toString(): string
    {
        return (string) ($this->function)();
    }
}
