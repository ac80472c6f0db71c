<?php

declare(strict_types=1);

namespace Weft\Bench\Http;

enum Protocol: string
{
    case Http1 = 'http/1.1';
    /** In clear text, with prior knowledge. */
    case Http2 = 'h2';
}
