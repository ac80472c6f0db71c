<?php

declare(strict_types=1);

namespace Weft\Examples\Customers;

use Weft\Bus\Bus;
use Weft\Bus\ConsumeOptions;
use Weft\Bus\DeadLetters;
use Weft\Sql\Database;

use function Weft\async;
use function Weft\delay;
use function Weft\detach;
use function Weft\signal;

/**
 * Fills the queue, handles every command and every event, and checks what came of it.
 */
final class Demo
{
    private const QUEUE = 'customers';

    private readonly Customers $customers;
    private readonly Run $run;
    private bool $stopped = false;

    /** @var array<string, float> seconds by phase, as far as this start went through it */
    private array $seconds = [];
    private int $sentBefore = 0;
    private int $rowsBefore = 0;
    private int $eventsBefore = 0;

    public function __construct(
        private readonly Database $database,
        private readonly Bus $bus,
        private readonly Screen $screen,
        private readonly int $asked,
        bool $fresh,
    ) {
        $this->run = Run::open($database, $asked, $fresh);
        $this->customers = new Customers();
        $this->customers->stored = $this->run->seen();
        $this->sentBefore = $this->run->sent;
        $this->rowsBefore = $this->rows();
        $this->eventsBefore = \array_sum($this->customers->stored);
        $bus->handlers($this->customers)->queue(self::QUEUE)->declare();
    }

    /** @return int exit code: 0 all is there, 1 something is not, 130 stopped before the end */
    public function run(): int
    {
        $started = \microtime(true);
        $this->announce();
        if (!$this->run->isContinued) {
            $this->clear();
        }
        detach(function (): void {
            signal(\SIGINT, \SIGTERM);
            $this->stopped = true;
            $this->bus->stop();
        });
        $this->fill();
        if (!$this->stopped) {
            $this->drain();
        }
        $finished = !$this->stopped;
        $verdict = $finished ? $this->verify() : null;
        $this->run->save($this->customers->stored, $finished);

        return $this->report($verdict, \microtime(true) - $started);
    }

    private function announce(): void
    {
        $this->screen->line(\sprintf(
            $this->run->isContinued ? 'Continuing run %d: %s of %s commands were sent, %s are stored.' : 'Run %d: %3$s commands.',
            $this->run->number,
            \number_format($this->run->sent),
            \number_format($this->run->commands),
            \number_format($this->rowsBefore),
        ));
        if ($this->asked !== $this->run->commands) {
            $this->screen->line(\sprintf(
                'The %s commands you asked for are for the next run; to give this one up, stop it and start again with --fresh.',
                \number_format($this->asked),
            ));
        }
    }

    /** A run that was given up, or was killed while it filled the queue, may have left messages. */
    private function clear(): void
    {
        $left = $this->bus->queue(self::QUEUE)->depth();
        if ($left > 0) {
            $this->screen->line(\sprintf('Emptying the queue: %s messages are left of a run that was given up.', \number_format($left)));
        }
        $this->bus->queue(self::QUEUE)->purge();
        $this->bus->queue(DeadLetters::queueOf(self::QUEUE))->purge();
    }

    private function fill(): void
    {
        if ($this->run->sent === $this->run->commands) {
            return;
        }
        $started = \microtime(true);
        $sent = $this->watched('fill', fn (): int => $this->bus->admin()->stats()->sent + $this->sentBefore, function (): int {
            return $this->bus->sendAll($this->commands());
        });
        $this->seconds['fill'] = \microtime(true) - $started;
        $this->run->filled($this->sentBefore + $sent);
    }

    /** @return iterable<StoreCustomer> */
    private function commands(): iterable
    {
        for ($i = $this->run->sent; $i < $this->run->commands && !$this->stopped; ++$i) {
            yield new StoreCustomer(self::uuid(), "name_{$i}", 'name@qwerty.root');
        }
    }

    private function drain(): void
    {
        $started = \microtime(true);
        $lastCommand = null;
        $before = $this->bus->admin()->stats()->succeeded();
        $handled = function () use (&$lastCommand, $before): int {
            $progress = $this->bus->admin()->stats();
            if ($lastCommand === null && $this->rowsBefore + $progress->commands + $progress->failed >= $this->run->commands) {
                $lastCommand = \microtime(true);
            }

            return $progress->succeeded() - $before + $this->rowsBefore + $this->eventsBefore;
        };
        $this->watched('drain', $handled, function (): void {
            $this->bus->consume(self::QUEUE, concurrency: 100, options: new ConsumeOptions(stopWhenEmpty: true, signals: false));
        });
        $handled();
        $lastCommand ??= \microtime(true);
        $this->seconds['commands'] = $lastCommand - $started;
        $this->seconds['events'] = \microtime(true) - $lastCommand;
    }

    /**
     * Runs `$work` while a line on the screen shows how far it is.
     *
     * @template T
     *
     * @param callable(): int $done
     * @param callable(): T $work
     *
     * @return T
     */
    private function watched(string $phase, callable $done, callable $work): mixed
    {
        $total = $phase === 'fill' ? $this->run->commands : 2 * $this->run->commands;
        $ticker = async(function () use ($phase, $done, $total): void {
            for ($last = $done(), $then = \microtime(true);; $last = $now, $then = $time) {
                delay(0.1);
                [$now, $time] = [$done(), \microtime(true)];
                $this->screen->progress($phase, $now, $total, ($now - $last) / ($time - $then));
            }
        });
        try {
            return $work();
        } finally {
            $ticker->cancel();
        }
    }

    private function rows(): int
    {
        return $this->database->execute('SELECT count(*) FROM customers')->value();
    }

    private function verify(): Verdict
    {
        $counted = $this->database->execute('SELECT count(*) AS n, count(DISTINCT name) AS names FROM customers')->first();

        return new Verdict(
            commands: $this->run->commands,
            rows: $counted['n'],
            distinct: $counted['names'],
            events: \count($this->customers->stored),
            eventsRepeated: \array_sum($this->customers->stored) - \count($this->customers->stored),
            eventsUncounted: $this->run->wasKilled ? $counted['n'] - \count($this->customers->stored) : 0,
            dead: $this->bus->queue(self::QUEUE)->deadLetters()->count(),
            left: $this->bus->queue(self::QUEUE)->depth(),
        );
    }

    private function report(?Verdict $verdict, float $wall): int
    {
        $progress = $this->bus->admin()->stats();
        $usage = \getrusage();
        $rate = fn (string $phase, int $count): string => isset($this->seconds[$phase]) && $count > 0
            ? \sprintf('%9s/s  %s in %.1f s', \number_format($count / \max($this->seconds[$phase], 1e-6)), \number_format($count), $this->seconds[$phase])
            : '        –';
        $this->screen->table([
            'fill' => $rate('fill', $this->run->sent - $this->sentBefore),
            'commands' => $rate('commands', $progress->commands),
            'events' => $rate('events', $progress->events),
            'wall' => \sprintf('%9.1f s', $wall),
            'cpu' => \sprintf('%9.1f s', $usage['ru_utime.tv_sec'] + $usage['ru_stime.tv_sec'] + ($usage['ru_utime.tv_usec'] + $usage['ru_stime.tv_usec']) / 1e6),
            'peak memory' => \sprintf('%9.0f MiB', $usage['ru_maxrss'] / 1024),
        ]);
        if ($verdict === null) {
            $this->screen->line('Stopped. Run it again to go on with what is left in the queue.');

            return 130;
        }
        foreach ($verdict->lines() as $line) {
            $this->screen->line($line);
        }
        foreach ($this->bus->queue(self::QUEUE)->deadLetters()->peek(3) as $letter) {
            $this->screen->line("  dead letter: {$letter->errorClass()}: {$letter->errorMessage()}");
        }

        return $verdict->isGood() ? 0 : 1;
    }

    /** A random version 4 UUID (RFC 9562 §5.4). */
    private static function uuid(): string
    {
        $bytes = \random_bytes(16);
        $bytes[6] = \chr(\ord($bytes[6]) & 0x0F | 0x40);
        $bytes[8] = \chr(\ord($bytes[8]) & 0x3F | 0x80);

        return \vsprintf('%s%s-%s-%s-%s-%s%s%s', \str_split(\bin2hex($bytes), 4));
    }
}
