<?php

declare(strict_types=1);

namespace Weft\Cli\Internal;

/** @internal */
enum Health: string
{
    case Ok = 'ok';
    case Warn = 'warn';
    case Fail = 'fail';
}
