<?php

declare(strict_types=1);

namespace Weft\Grpc\Client;

/** The compression of a client's messages. The server must support it; all support gzip. */
enum Compression: string
{
    case Gzip = 'gzip';
    case Deflate = 'deflate';
    case Zstd = 'zstd';
}
