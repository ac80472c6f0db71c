<?php

declare(strict_types=1);

namespace Weft;

/** Marks every exception and error that Weft throws. */
interface Exception extends \Throwable
{
}
