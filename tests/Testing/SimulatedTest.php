<?php

declare(strict_types=1);

namespace Weft\Tests\Testing;

use Weft\Bus\Transport;
use Weft\Bus\Transport\Memory;
use Weft\Testing\Faults;
use Weft\Testing\Internal\SimulatedBroker;
use Weft\Tests\Bus\Transport\TransportConformance;

/** The broker of the test kit, while nothing is to go wrong, is one like the others. */
final class SimulatedTest extends TransportConformance
{
    private ?Memory $broker = null;

    protected function connect(): Transport
    {
        return $this->broker ??= new Memory(new SimulatedBroker(1, new Faults()));
    }
}
