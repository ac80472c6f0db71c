<?php

declare(strict_types=1);

/* php worker.php TRANSPORT BROKER-DSN DATABASE-DSN FILE: consumes until it is told to stop or killed, and notes its progress in FILE. */

namespace Weft\Bench\Chaos\Work;

use Psr\Log\AbstractLogger;
use Weft\Bus\Bus;
use Weft\Bus\BusOptions;
use Weft\Bus\ConsumeOptions;
use Weft\Bus\InboxOptions;
use Weft\Bus\TransportException;
use Weft\Pool\PoolException;
use Weft\Sql\Database;
use Weft\Pool\PoolOptions;
use Weft\Sql\SqlException;

use function Weft\delay;
use function Weft\detach;
use function Weft\run;

require __DIR__ . '/../../autoload.php';
require __DIR__ . '/Transfer.php';
require __DIR__ . '/Transferred.php';
require __DIR__ . '/Ledgers.php';
require __DIR__ . '/Brokers.php';

final class Log extends AbstractLogger
{
    /** @param array<string, mixed> $context */
    public function log($level, $message, array $context = []): void
    {
        $values = array_map(static fn (mixed $value): string => is_scalar($value) ? (string) $value : get_debug_type($value), $context);
        fwrite(STDERR, sprintf("%s %d %s %s\n", date('H:i:s'), getmypid(), $level, strtr((string) $message, array_combine(
            array_map(static fn (string $name): string => '{' . $name . '}', array_keys($values)),
            array_map(static fn (string $value): string => substr($value, 0, 300), array_values($values)),
        ))));
    }
}

run(static function () use ($argv): void {
    [, $transport, $broker, $dsn, $file] = $argv;
    while (true) {
        try {
            $database = Database::connect($dsn, new PoolOptions(size: 8));
            $bus = Bus::connect(Brokers::connect($transport, $broker, $database), $database, new BusOptions(logger: new Log(), inbox: new InboxOptions(relayAfter: 2.0)))->handlers(new Ledgers());
            detach(static function () use ($bus, $file): void {
                while (true) {
                    file_put_contents($file, json_encode($bus->admin()->stats()));
                    delay(0.1);
                }
            });
            $bus->consume('chaos', concurrency: 20, options: new ConsumeOptions(prefetch: 100));
            file_put_contents($file, json_encode($bus->admin()->stats()));
            break;
        } catch (TransportException | PoolException | SqlException $failure) {
            // The servers may be down when it starts.
            (new Log())->warning('{error}', ['error' => $failure->getMessage()]);
            delay(0.3);
        }
    }
    $bus->close();
    $database->close();
});
