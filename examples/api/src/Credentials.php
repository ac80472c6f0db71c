<?php

declare(strict_types=1);

namespace Weft\Examples\Api;

final class Credentials
{
    public function __construct(public readonly string $name, #[\SensitiveParameter] public readonly string $password)
    {
    }
}
