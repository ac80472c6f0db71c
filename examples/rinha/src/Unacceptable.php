<?php

declare(strict_types=1);

namespace Weft\Examples\Rinha;

/** The request was understood, and a rule excludes it: 422. */
final class Unacceptable extends \RuntimeException
{
}
