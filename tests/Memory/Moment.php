<?php

declare(strict_types=1);

namespace Weft\Tests\Memory;

/** Seven seconds after the epoch; runs a function of the test when the extension asks which time it is. */
final class Moment extends \DateTimeImmutable
{
    public function __construct(private readonly \Closure $function)
    {
        parent::__construct('@7');
    }

    public function getTimestamp(): int
    {
        ($this->function)();

        return parent::getTimestamp();
    }
}
