<?php

declare(strict_types=1);

namespace Weft\Bench\Chaos;

use Weft\Bus\Bus;
use Weft\Bus\BusException;
use Weft\Bus\DeadLetter;
use Weft\Bus\Header;
use Weft\Sql\Database;

use function Weft\delay;

/** Compares the expected contents of tables and queues with the actual ones. */
final class Audit
{
    /** Seconds after the last message within which duplicates arrive. */
    private const SETTLE_SECONDS = 1.5;

    public function __construct(
        private readonly Bus $bus,
        private readonly Database $database,
        private readonly string $queue,
        private readonly Manners $manners,
    ) {
    }

    /** Waits until nothing is left to do; false once nothing was done for so many seconds. A busy machine is slow, but gets on. */
    public function awaitDrained(float $stalledAfter): bool
    {
        $pause = 0.25;
        $left = [];
        for ($progressed = microtime(true); microtime(true) - $progressed < $stalledAfter;) {
            delay($pause);
            $asked = microtime(true);
            $leftBefore = $left;
            $left = $this->left();
            $progressed = $left === $leftBefore ? $progressed : $asked;
            $isDrained = array_sum($left) === 0;
            // Counting a million rows is work that the workers wait for.
            $pause = max(0.25, 10 * (microtime(true) - $asked));
            if ($isDrained) {
                delay(self::SETTLE_SECONDS);

                return true;
            }
        }

        return false;
    }

    /** @return array<string, mixed> */
    public function verdict(): array
    {
        $transfers = $this->totalAndDifferent('number', 'transfers');
        $bookings = $this->totalAndDifferent('number * 10 + listener', 'bookings');
        // What breaks between parking a message and acknowledging it makes a second letter of the same id.
        $letters = array_map(static fn (DeadLetter $letter): string => $letter->headers[Header::MESSAGE_ID], $this->bus->queue($this->queue)->deadLetters()->peek(1_000));
        $deadLettered = count(array_unique($letters));
        $commandsLost = count($this->manners->byNumber) - $transfers['different'] - $deadLettered;

        return [
            'effects' => $transfers['total'] + $bookings['total'],
            'effects_expected' => 3 * $this->manners->good(),
            'duplicate_effects' => $transfers['total'] - $transfers['different'] + $bookings['total'] - $bookings['different'],
            'lost' => max(0, $commandsLost) + max(0, 2 * $transfers['different'] - $bookings['different']),
            'dead_lettered' => $deadLettered,
            'dead_lettered_twice' => count($letters) - $deadLettered,
            'dead_lettered_expected' => $this->manners->hopeless(),
            'left_in_outbox' => $this->number('SELECT count(*) FROM weft_outbox'),
        ];
    }

    /** @return list<int> messages without each of their effects; the queue counts as one as long as it is unknown what is in it */
    private function left(): array
    {
        $wanted = $this->manners->good();
        $left = [
            $this->number('SELECT (SELECT count(*) FROM weft_outbox) + (SELECT count(*) FROM weft_delayed)'),
            max(0, $wanted - $this->number('SELECT count(DISTINCT number) FROM transfers')),
            max(0, 2 * $wanted - $this->number('SELECT count(*) FROM bookings')),
        ];
        if (array_sum($left) !== 0) {
            return [...$left, 1, 0];
        }
        try {
            $queue = $this->bus->queue($this->queue);

            return [...$left, $queue->depth(), max(0, $this->manners->hopeless() - $queue->deadLetters()->count())];
        } catch (BusException) {
            return [...$left, 1, 0];
        }
    }

    /** @return array{total: int, different: int} */
    private function totalAndDifferent(string $key, string $table): array
    {
        return $this->database->execute("SELECT count(*) AS total, count(DISTINCT {$key}) AS different FROM {$table}")->first();
    }

    private function number(string $query): int
    {
        return (int) $this->database->execute($query)->value();
    }
}
