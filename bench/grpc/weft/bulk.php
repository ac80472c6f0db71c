<?php

declare(strict_types=1);

/*
 * Sends or gets many bytes in one call of bench.Bulk on 127.0.0.1:$PORT: bulk.php upload|download BYTES WINDOW, the last being the
 * bytes a server may send on a stream before they are read. Prints the seconds it took.
 */

use Weft\Bench\Grpc\Bulk\BulkClient;
use Weft\Bench\Grpc\Bulk\Chunk;
use Weft\Bench\Grpc\Bulk\Total;
use Weft\Bench\Grpc\Weft\Bytes;
use Weft\Grpc\Client\Http2Channel;

use function Weft\run;

require __DIR__ . '/../../../autoload.php';
require __DIR__ . '/../../autoload.php';
require __DIR__ . '/Bytes.php';

[, $direction, $bytes, $window] = $argv;
$chunks = static function () use ($bytes): Generator {
    $chunk = new Chunk(str_repeat('x', Bytes::CHUNK));
    for ($left = (int) $bytes; $left > 0; $left -= Bytes::CHUNK) {
        yield $chunk;
    }
};
echo run(static function () use ($direction, $bytes, $window, $chunks): float {
    $bulk = new BulkClient(Http2Channel::connect('127.0.0.1:' . getenv('PORT'), options: new \Weft\Grpc\Client\ChannelOptions(streamWindow: (int) $window)));
    // The connection is made before the clock runs.
    $bulk->upload([new Chunk('')]);
    $start = microtime(true);
    $count = 0;
    if ($direction === 'upload') {
        $count = $bulk->upload($chunks())->bytes;
    } else {
        foreach ($bulk->download(new Total((int) $bytes)) as $chunk) {
            $count += strlen($chunk->data);
        }
    }
    $count === (int) $bytes || throw new UnexpectedValueException("$count of $bytes bytes arrived");

    return microtime(true) - $start;
}), "\n";
