<?php

declare(strict_types=1);

namespace Weft\Bench;

/** One run in a results file. */
interface Measured
{
    /** @param string $name of a number in the results file; null when it was not measured or the run failed */
    public function number(string $name): float|int|null;

    /** Why there are no numbers; null when there are. */
    public function failure(): ?string;
}
