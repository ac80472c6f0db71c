<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

/** @internal */
enum MessageKind: string
{
    case Command = 'command';
    case Event = 'event';
    case Query = 'query';
}
