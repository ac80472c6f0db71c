<?php

declare(strict_types=1);

// Sends and handles that many messages on the memory transport: php -d extension=… bench/guard/messages.php 1000

use Weft\Bus\Bus;
use Weft\Bus\CommandHandler;
use Weft\Bus\ConsumeOptions;

use function Weft\run;

require __DIR__ . '/../../autoload.php';

final class Count
{
    public function __construct(public readonly int $number, public readonly string $text)
    {
    }
}

final class Counter
{
    public int $handled = 0;

    #[CommandHandler]
    public function count(Count $command): void
    {
        ++$this->handled;
    }
}

$total = (int) $argv[1];
$counter = new Counter();
run(static function () use ($total, $counter): void {
    $bus = Bus::connect('memory:')->handlers($counter);
    $bus->queue('guard')->declare();
    for ($i = 0; $i < $total; ++$i) {
        $bus->send(new Count($i, 'a message of the guard'));
    }
    $bus->consume('guard', concurrency: 8, options: new ConsumeOptions(prefetch: 8, signals: false, limit: $total));
    $bus->close();
});
exit($counter->handled === $total ? 0 : 1);
