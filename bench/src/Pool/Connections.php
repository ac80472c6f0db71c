<?php

declare(strict_types=1);

namespace Weft\Bench\Pool;

/** Where a query gets its connection from. */
interface Connections
{
    /** Has the database wait for so long on a connection of its own, and reads the answer. */
    public function sleep(float $seconds): void;
}
