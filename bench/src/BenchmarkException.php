<?php

declare(strict_types=1);

namespace Weft\Bench;

/** A benchmark cannot go on. The message names what is missing or what went wrong. */
class BenchmarkException extends \RuntimeException
{
}
