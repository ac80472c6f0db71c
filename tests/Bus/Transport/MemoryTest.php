<?php

declare(strict_types=1);

namespace Weft\Tests\Bus\Transport;

use Weft\Bus\Transport;
use Weft\Bus\Transport\Memory;

final class MemoryTest extends TransportConformance
{
    private ?Memory $broker = null;

    protected function connect(): Transport
    {
        return $this->broker ??= new Memory();
    }
}
