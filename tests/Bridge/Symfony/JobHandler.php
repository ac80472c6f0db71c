<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Symfony;

use Symfony\Component\Messenger\Exception\UnrecoverableMessageHandlingException;
use Symfony\Component\Messenger\MessageBusInterface;

use function Weft\delay;

final class JobHandler
{
    /** @var list<string> what was handled, by all kernels */
    public static array $handled = [];

    public static int $waiting = 0;

    /** @var array<int, true> the handlers that have run, one for each kernel */
    public static array $instances = [];

    public function __construct(private readonly MessageBusInterface $bus)
    {
    }

    public function __invoke(Job $job): void
    {
        self::$instances[\spl_object_id($this)] = true;
        match ($job->what) {
            'together' => self::together($job->number),
            'send and give up' => $this->sendAndGiveUp(),
            'send' => $this->bus->dispatch(new Job('note', $job->number)),
            default => null,
        };
        self::$handled[] = "$job->what $job->number";
    }

    private static function together(int $many): void
    {
        ++self::$waiting;
        while (self::$waiting < $many) {
            delay(0.002);
        }
    }

    private function sendAndGiveUp(): never
    {
        $this->bus->dispatch(new Job('note', 99));
        throw new UnrecoverableMessageHandlingException('no retry helps');
    }
}
