<?php

declare(strict_types=1);

namespace Weft\Tests\Sql\Support;

final class Record implements \JsonSerializable
{
    /** @param array<string, mixed> $document */
    public function __construct(public array $document)
    {
    }

    /** @return array<string, mixed> */
    public function jsonSerialize(): array
    {
        return $this->document;
    }
}
