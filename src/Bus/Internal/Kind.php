<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

/** @internal */
enum Kind: string
{
    case Command = 'command';
    case Event = 'event';
    case Query = 'query';
}
