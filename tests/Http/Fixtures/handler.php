<?php

declare(strict_types=1);

use Weft\Http\Body;
use Weft\Tests\Http\Nested as Part;

return /** @param list<Part> $parts */ static fn(#[Body] array $parts): array => $parts;
