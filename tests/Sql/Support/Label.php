<?php

declare(strict_types=1);

namespace Weft\Tests\Sql\Support;

final class Label implements \Stringable
{
    public function __construct(private readonly string $text)
    {
    }

    public function __toString(): string
    {
        return $this->text;
    }
}
