<?php

declare(strict_types=1);

namespace Weft\Bench\Grpc\Weft;

use Weft\Bench\Grpc\Bulk\Bulk;
use Weft\Bench\Grpc\Bulk\Chunk;
use Weft\Bench\Grpc\Bulk\Total;
use Weft\Grpc\Call;

final class Bytes implements Bulk
{
    public const CHUNK = 65_536;

    public function upload(iterable $requests, Call $call): Total
    {
        $bytes = 0;
        foreach ($requests as $chunk) {
            $bytes += strlen($chunk->data);
        }

        return new Total($bytes);
    }

    public function download(Total $request, Call $call): iterable
    {
        $chunk = new Chunk(str_repeat('x', self::CHUNK));
        for ($left = $request->bytes; $left > 0; $left -= self::CHUNK) {
            yield $chunk;
        }
    }
}
