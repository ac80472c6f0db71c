<?php

declare(strict_types=1);

namespace Weft\Bench;

/** A benchmark failed. The message names the missing tool or the failure. */
class BenchmarkException extends \RuntimeException
{
}
