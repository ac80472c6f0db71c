<?php

declare(strict_types=1);

namespace Weft\Tests\Sql\Support;

final class Point implements \JsonSerializable
{
    public function __construct(private readonly int $x, private readonly int $y)
    {
    }

    /** @return array{x: int, y: int} */
    public function jsonSerialize(): array
    {
        return ['x' => $this->x, 'y' => $this->y];
    }
}
