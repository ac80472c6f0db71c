<?php

declare(strict_types=1);

namespace Weft\Bench;

/** Something did not end in the time it had: to try it again may cost that time again. */
final class TimedOut extends BenchmarkException
{
}
