<?php

declare(strict_types=1);

namespace Weft\Grpc\Client;

/** How the messages of a client are compressed. The server must know it: gzip is what all do. */
enum Compression: string
{
    case Gzip = 'gzip';
    case Deflate = 'deflate';
    case Zstd = 'zstd';
}
