<?php

declare(strict_types=1);

namespace Weft\Examples\Rinha;

/** The request cannot be read as what it should be: 400. */
final class Malformed extends \RuntimeException
{
}
