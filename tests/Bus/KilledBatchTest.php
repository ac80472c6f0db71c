<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use Weft\Bus\Bus;
use Weft\Bus\BusOptions;
use Weft\Bus\MessageOptions;
use Weft\Tests\Bus\Fixtures\CustomerStored;
use Weft\Tests\Bus\Fixtures\Killable;
use Weft\Tests\Bus\Fixtures\Servers;

use function Weft\delay;

/** Processes that handle batches, killed while they work. */
final class KilledBatchTest extends BusTestCase
{
    use Killable;
    use Servers;

    private const MESSAGES = 6000;

    public function testEachItemHasItsEffectAndItsEventOnceAndTheOneThatFailsIsDeadLetteredOnce(): void
    {
        $this->inRuntime(function (): void {
            $database = $this->database();
            $bus = Bus::connect($this->brokerDsn(), $database, new BusOptions(messages: new MessageOptions(classes: [CustomerStored::class])))->handlers(self::storing(static fn() => null));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(self::MESSAGES));
            $effects = static fn(): int => $database->execute('SELECT count(*) FROM effects')->value();
            $pids = [$this->start('batching.php'), $this->start('batching.php')];
            for ($kill = 0; $kill < 4; $kill++) {
                $before = $effects();
                while ($effects() < $before + 500) {
                    delay(0.005);
                }
                $this->kill(\array_shift($pids));
                $pids[] = $this->start('batching.php');
            }
            self::assertLessThan(2 * self::MESSAGES - 2, $effects(), 'they were killed while they worked');
            while ($effects() < 2 * self::MESSAGES - 2) {
                delay(0.05);
            }
            // Message 77 and what the outbox still has to send take their time.
            while ($bus->queue(self::QUEUE)->deadLetters()->count() === 0 || $bus->admin()->backlog()['outbox'] > 0) {
                delay(0.05);
            }
            // A duplicate would come now.
            delay(1.5);

            self::assertSame(2 * self::MESSAGES - 2, $effects());
            self::assertSame(2 * self::MESSAGES - 2, $database->execute('SELECT count(*) FROM (SELECT DISTINCT id, listener FROM effects) AS different')->value());
            $letters = $bus->queue(self::QUEUE)->deadLetters()->peek();
            self::assertSame(['77'], \array_values(\array_unique(\array_map(static fn($letter): string => \json_decode($letter->body)->id, $letters))));
            self::assertSame(['outbox' => 0, 'delayed' => 0], $bus->admin()->backlog());
            $bus->close();
            $database->close();
        }, 180.0);
    }
}
