<?php

declare(strict_types=1);

namespace Weft\Bench\Chaos;

use Weft\Bench\BenchmarkException;
use Weft\Bench\Chaos\Work\Ledgers;
use Weft\Bench\Chaos\Work\Transfer;
use Weft\Bus\Bus;
use Weft\Bus\BusException;
use Weft\Bus\DeadLetter;
use Weft\Bus\Header;
use Weft\Bus\Transport;
use Weft\Bus\Transport\Outgoing;
use Weft\Bus\Transport\RabbitMq;
use Weft\Bus\Transport\Sqlite;
use Weft\Sql\Database;
use Weft\Sql\SqlException;

use function Weft\async;
use function Weft\delay;

/** One run: sends numbered commands, breaks things meanwhile, lets it all drain, and counts. */
final class Chaos
{
    private const QUEUE = 'chaos';
    private const CHUNK = 100;

    /** Seconds that a long fault takes: for so long commands go on trickling in. */
    private const FAULT_SECONDS = 10.0;

    /** Kills of a worker, for each of the other faults. */
    private const KILLS = 3;

    /** How many in a thousand stumble and come later; poison and crashes are so many in all. */
    private const STUMBLES = 20;
    private const LATER = 20;
    private const POISON = 5;
    private const CRASHES = 1;

    private readonly History $history;
    private readonly string $folder;
    private Ground $ground;
    private int $sent = 0;

    /** @var list<string> */
    private array $plan = [];

    /** @var array<string, int> how many of each there were */
    private array $faults = [];

    /** When the current fault began; 0 when there are no more. */
    private float $faultSince = 0.0;

    public function __construct(private readonly Options $options)
    {
        $this->folder = (getenv('WEFT_VAR') ?: "{$options->root}/var") . '/chaos';
        @mkdir($this->folder, recursive: true);
        @mkdir(dirname($options->out), recursive: true);
        array_map(unlink(...), glob("{$this->folder}/{worker-*.json,*.log}", GLOB_BRACE) ?: []);
        $this->history = new History(dirname($options->out) . '/' . basename($options->out, '.json') . '.log');
    }

    /** @return array<string, mixed> */
    public function run(): array
    {
        mt_srand($this->options->seed);
        $this->ground = $this->options->transport === 'sqlite'
            ? new SqliteGround($this->folder)
            : new ServerGround($this->options->root, $this->folder, "{$this->folder}/services.log");
        $this->history->note("servers are up, seed {$this->options->seed}");
        try {
            return $this->finish($this->work());
        } finally {
            $this->ground->close();
        }
    }

    /** @return array<string, mixed> */
    private function work(): array
    {
        $database = Database::connect($this->ground->directDatabase());
        foreach (['transfers', 'bookings', 'weft_inbox', 'weft_outbox', 'weft_attempts', 'weft_delayed', 'weft_schedules'] as $table) {
            $database->execute("DROP TABLE IF EXISTS {$table}");
        }
        $database->execute('CREATE TABLE transfers (number INT NOT NULL)');
        $database->execute('CREATE TABLE bookings (number INT NOT NULL, listener INT NOT NULL)');
        $broker = $this->transport();
        $bus = Bus::connect($broker, $database)->handlers(new Ledgers());
        $bus->declare(self::QUEUE);
        $bus->purge(self::QUEUE);
        $broker instanceof RabbitMq && $bus->purge(self::QUEUE . '.dead');
        $manners = $this->manners();
        $this->plan = $this->plan();
        $this->faultSince = microtime(true);

        $fleet = new Fleet($this->options->workers, [$this->ground->broker(), $this->ground->database()], $this->folder, $this->history);
        $running = async($fleet->run(...));
        $started = microtime(true);
        $sending = async(fn () => $this->send($broker, $manners));
        $breaking = async(fn () => $this->break($fleet));
        $sending->await();
        $this->history->note("{$this->sent} commands are sent");
        $breaking->await();
        $this->history->note('no more faults');
        $drained = $this->drain($bus, $database, $manners, $started);
        $this->history->note($drained ? 'drained' : 'NOT drained in time');
        $fleet->stop(10.0);
        $running->await();
        $seconds = microtime(true) - $started;
        $verdict = $this->count($database, $bus, $manners) + $this->workers($fleet) + ['seconds' => round($seconds, 1)];
        $bus->close();
        $database->close();

        return $verdict;
    }

    private function transport(): Transport
    {
        return $this->options->transport === 'sqlite' ? Sqlite::connect($this->ground->broker()) : RabbitMq::connect($this->ground->broker());
    }

    /** @return array<int, string> how each command goes, by number */
    private function manners(): array
    {
        $manners = [];
        for ($number = 0; $number < $this->options->messages; ++$number) {
            $dice = mt_rand(0, 999);
            $manners[$number] = match (true) {
                $dice < self::STUMBLES => Transfer::STUMBLE,
                $dice < self::STUMBLES + self::LATER => Transfer::LATER,
                default => Transfer::WELL,
            };
        }
        for ($i = 0; $i < self::POISON + self::CRASHES; ++$i) {
            $manners[mt_rand(0, $this->options->messages - 1)] = $i < self::POISON ? Transfer::POISON : Transfer::CRASH;
        }

        return $manners;
    }

    /**
     * Sends each command until the broker has it, always under the same id.
     *
     * @param array<int, string> $manners
     */
    private function send(Transport $broker, array $manners): void
    {
        foreach (array_chunk($manners, self::CHUNK, true) as $chunk) {
            while ($this->sent > $this->pace()) {
                delay(0.02);
            }
            $messages = [];
            foreach ($chunk as $number => $manner) {
                $messages[] = new Outgoing(Transfer::class, json_encode(['number' => $number, 'manner' => $manner], JSON_THROW_ON_ERROR), [
                    Header::MESSAGE_ID => sprintf('transfer-%08d', $number),
                    Header::KIND => 'command',
                ], mustRoute: true);
            }
            while (true) {
                try {
                    $broker->publish($messages);
                    break;
                } catch (BusException | SqlException $failure) {
                    $this->history->note('sending failed and is tried again: ' . substr($failure->getMessage(), 0, 200));
                    delay(0.2);
                }
            }
            $this->sent += count($messages);
        }
    }

    /** @return list<string> names of faults in the order of the seed */
    private function plan(): array
    {
        $faults = $this->ground->faults();
        $plan = [];
        for ($round = 0; $round < $this->options->rounds; ++$round) {
            array_push($plan, ...array_keys($faults));
            array_push($plan, ...array_fill(0, self::KILLS, 'worker_kill'));
        }
        for ($i = count($plan) - 1; $i > 0; --$i) {
            $j = mt_rand(0, $i);
            [$plan[$i], $plan[$j]] = [$plan[$j], $plan[$i]];
        }

        return $plan;
    }

    private function break(Fleet $fleet): void
    {
        $faults = $this->ground->faults();
        foreach ($this->plan as $name) {
            $this->faultSince = microtime(true);
            [$pause, $place] = [mt_rand(200, 900) / 1000, mt_rand(0, $this->options->workers - 1)];
            delay($pause);
            $this->history->note("{$name} …");
            $what = $name === 'worker_kill' ? $this->kill($fleet, $place) : $faults[$name]();
            $this->history->note("… {$what}");
            $this->faults[$name] = ($this->faults[$name] ?? 0) + 1;
        }
        $this->faultSince = 0.0;
    }

    /** How many commands are to be sent by now: they come while things break, not before. */
    private function pace(): float
    {
        if ($this->faultSince === 0.0) {
            return INF;
        }
        $part = min(1.0, (microtime(true) - $this->faultSince) / self::FAULT_SECONDS);

        return $this->options->messages * (array_sum($this->faults) + $part) / count($this->plan);
    }

    private function kill(Fleet $fleet, int $place): string
    {
        $fleet->kill($place);

        return "worker at place {$place} killed";
    }

    /** @param array<int, string> $manners */
    private function drain(Bus $bus, Database $database, array $manners, float $started): bool
    {
        $bad = $this->expectedParked($manners);
        while (microtime(true) - $started < $this->options->deadline) {
            delay(0.25);
            $left = (int) $database->execute('SELECT (SELECT count(*) FROM weft_outbox) + (SELECT count(*) FROM weft_delayed)')->value();
            $transfers = (int) $database->execute('SELECT count(DISTINCT number) FROM transfers')->value();
            $bookings = (int) $database->execute('SELECT count(*) FROM bookings')->value();
            $wanted = count($manners) - $bad;
            try {
                $queued = $bus->depth(self::QUEUE);
                $parked = $bus->deadLetters(self::QUEUE)->count();
            } catch (BusException) {
                continue;
            }
            if ($left === 0 && $queued === 0 && $transfers >= $wanted && $bookings >= 2 * $wanted && $parked >= $bad) {
                // Whatever comes twice would come now.
                delay(1.5);

                return true;
            }
        }

        return false;
    }

    /**
     * @param array<int, string> $manners
     * @return array<string, mixed>
     */
    private function count(Database $database, Bus $bus, array $manners): array
    {
        $good = count($manners) - $this->expectedParked($manners);
        $transfers = $database->execute('SELECT count(*) AS total, count(DISTINCT number) AS different FROM transfers')->first();
        $bookings = $database->execute('SELECT count(*) AS total, count(DISTINCT number * 10 + listener) AS different FROM bookings')->first();
        // What breaks between parking a message and acknowledging it makes a second letter of the same id.
        $letters = array_map(static fn (DeadLetter $letter): string => $letter->headers[Header::MESSAGE_ID], $bus->deadLetters(self::QUEUE)->peek(1_000));
        $parked = count(array_unique($letters));
        $accounted = $transfers['different'] + max(0, $parked);

        return [
            'transport' => $this->options->transport,
            'seed' => $this->options->seed,
            'sent' => $this->sent,
            'effects' => $transfers['total'] + $bookings['total'],
            'effects_expected' => 3 * $good,
            'duplicate_effects' => $transfers['total'] - $transfers['different'] + $bookings['total'] - $bookings['different'],
            'lost' => max(0, count($manners) - $accounted) + max(0, 2 * $transfers['different'] - $bookings['different']),
            'parked' => $parked,
            'parked_twice' => count($letters) - $parked,
            'parked_expected' => $this->expectedParked($manners),
            'left_in_outbox' => $database->execute('SELECT count(*) FROM weft_outbox')->value(),
            'faults' => $this->faults,
        ];
    }

    /** @return array<string, mixed> */
    private function workers(Fleet $fleet): array
    {
        $progress = $fleet->progress();

        return [
            'duplicates_absorbed' => $progress['duplicates'] ?? 0,
            'retried' => $progress['retried'] ?? 0,
            'worker_crashes' => $fleet->crashed,
        ];
    }

    /** @param array<int, string> $manners */
    private function expectedParked(array $manners): int
    {
        return count(array_filter($manners, static fn (string $manner): bool => $manner === Transfer::POISON || $manner === Transfer::CRASH));
    }

    /**
     * @param array<string, mixed> $verdict
     * @return array<string, mixed>
     */
    private function finish(array $verdict): array
    {
        $flags = JSON_PRETTY_PRINT | JSON_UNESCAPED_SLASHES | JSON_THROW_ON_ERROR;
        file_put_contents($this->options->out, json_encode($verdict, $flags) . "\n") !== false
            || throw new BenchmarkException("cannot write {$this->options->out}");

        return $verdict;
    }
}
