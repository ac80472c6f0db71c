<?php

declare(strict_types=1);

namespace Weft\Examples\Api;

final class User
{
    public function __construct(public readonly int $id, public readonly string $name)
    {
    }
}
