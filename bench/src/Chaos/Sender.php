<?php

declare(strict_types=1);

namespace Weft\Bench\Chaos;

use Weft\Bench\Chaos\Work\Transfer;
use Weft\Bus\BusException;
use Weft\Bus\Header;
use Weft\Bus\Transport;
use Weft\Bus\Transport\Outgoing;
use Weft\Pool\PoolException;
use Weft\Sql\SqlException;

use function Weft\delay;

/** Sends the commands of a run while things break, not before. */
final class Sender
{
    private const CHUNK = 100;

    public int $sent = 0;

    public function __construct(private readonly Transport $broker, private readonly Faults $faults, private readonly History $history)
    {
    }

    /** Sends each command until the broker has it, always under the same id. */
    public function run(Manners $manners): void
    {
        $total = count($manners->byNumber);
        foreach (array_chunk($manners->byNumber, self::CHUNK, true) as $chunk) {
            while ($this->sent > $total * $this->faults->progress()) {
                delay(0.02);
            }
            $this->insist(self::messages($chunk));
            $this->sent += count($chunk);
        }
    }

    /**
     * @param array<int, string> $manners by number
     *
     * @return list<Outgoing>
     */
    private static function messages(array $manners): array
    {
        $messages = [];
        foreach ($manners as $number => $manner) {
            $messages[] = new Outgoing(Transfer::class, json_encode(['number' => $number, 'manner' => $manner], JSON_THROW_ON_ERROR), [
                Header::MESSAGE_ID => sprintf('transfer-%08d', $number),
                Header::KIND => 'command',
            ], mustRoute: true);
        }

        return $messages;
    }

    /** @param list<Outgoing> $messages */
    private function insist(array $messages): void
    {
        while (true) {
            try {
                $this->broker->publish($messages);

                return;
            } catch (BusException | PoolException | SqlException $failure) {
                $this->history->note('sending failed and is tried again: ' . substr($failure->getMessage(), 0, 200));
                delay(0.2);
            }
        }
    }
}
