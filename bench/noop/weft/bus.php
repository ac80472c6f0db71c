<?php

declare(strict_types=1);

// Weft's bus: publishes events whose body has 100 bytes, confirmed, or handles them with a listener that does nothing.

namespace Weft\Bench\Noop\Work;

use Weft\Bus\Bus;
use Weft\Bus\ConsumeOptions;
use Weft\Bus\EventListener;
use Weft\Bus\Transport\RabbitMq;

use function Weft\run;

require __DIR__ . '/../../../autoload.php';

final class Ping
{
    public function __construct(public readonly string $text)
    {
    }
}

final class Pings
{
    #[EventListener]
    public function ping(Ping $ping): void
    {
    }
}

/** @return iterable<Ping> */
function pings(int $total, int $bytes): iterable
{
    $ping = new Ping(str_repeat('x', $bytes - strlen('{"text":""}')));
    for ($i = 0; $i < $total; ++$i) {
        yield $ping;
    }
}

echo json_encode(run(static function () use ($argv): array {
    [$queue, $total, $window] = [(string) getenv('BENCH_QUEUE'), (int) getenv('MESSAGES'), (int) getenv('WINDOW')];
    $bus = Bus::connect(RabbitMq::connect((string) getenv('AMQP_URL'), window: $window))->handlers(new Pings());
    $bus->queue($queue)->declare();
    $started = hrtime(true);
    $argv[1] === 'publish'
        ? $bus->publishAll(pings($total, (int) getenv('BYTES')))
        : $bus->consume($queue, concurrency: intdiv($window, 2), options: new ConsumeOptions(prefetch: $window, limit: $total));
    $seconds = (hrtime(true) - $started) / 1e9;
    $bus->close();

    return ['seconds' => $seconds];
})), "\n";
