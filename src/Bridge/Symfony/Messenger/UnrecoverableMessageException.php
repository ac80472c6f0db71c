<?php

declare(strict_types=1);

namespace Weft\Bridge\Symfony\Messenger;

use Weft\Bus\Unrecoverable;

/** A handler of Messenger has thrown what no retry can help. */
final class UnrecoverableMessageException extends \RuntimeException implements Unrecoverable
{
}
