<?php

declare(strict_types=1);

namespace Weft\Http;

use Weft\Exception;

/** A certificate, its key or the authorities of clients cannot be used. */
final class TlsFailed extends \RuntimeException implements Exception
{
}
