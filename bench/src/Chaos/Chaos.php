<?php

declare(strict_types=1);

namespace Weft\Bench\Chaos;

use Weft\Amqp\Connection;
use Weft\Bench\Chaos\Work\Brokers;
use Weft\Bench\Chaos\Work\Ledgers;
use Weft\Bench\ResultsFile;
use Weft\Bus\Bus;
use Weft\Bus\Transport;
use Weft\Bus\Transport\RabbitMq;
use Weft\Sql\Database;

use function Weft\async;

/** One run: sends numbered commands, breaks things meanwhile, lets it all drain, and counts. */
final class Chaos
{
    private const QUEUE = 'chaos';
    private const TABLES = [
        'transfers', 'bookings', 'weft_inbox', 'weft_outbox', 'weft_redeliveries', 'weft_delayed', 'weft_schedules', 'weft_broker',
        'weft_messages', 'weft_consumers', 'weft_bindings', 'weft_queues',
    ];
    private const STOP_SECONDS = 10.0;

    private readonly History $history;
    private readonly string $directory;
    private Ground $ground;

    public function __construct(private readonly Options $options)
    {
        $this->directory = (getenv('WEFT_VAR') ?: "{$options->root}/var") . '/chaos';
        @mkdir($this->directory, recursive: true);
        @mkdir(dirname($options->out), recursive: true);
        array_map(unlink(...), glob("{$this->directory}/{worker-*.json,*.log}", GLOB_BRACE) ?: []);
        $this->history = new History(dirname($options->out) . '/' . basename($options->out, '.json') . '.log');
    }

    /** @return array<string, mixed> */
    public function run(): array
    {
        mt_srand($this->options->seed);
        $servers = [$this->options->root, $this->directory, "{$this->directory}/services.log"];
        $this->ground = match ($this->options->transport) {
            'sqlite' => new SqliteGround($this->directory),
            'postgres' => new PostgresGround(...$servers),
            'cluster' => new ClusterGround(...$servers),
            default => new ServerGround(...$servers),
        };
        $this->history->note("servers are up, seed {$this->options->seed}");
        try {
            $verdict = $this->work();
        } finally {
            $this->ground->close();
        }
        ResultsFile::save($this->options->out, $verdict);

        return $verdict;
    }

    /** @return array<string, mixed> */
    private function work(): array
    {
        $database = $this->emptyDatabase();
        $broker = Brokers::connect($this->options->transport, $this->ground->broker());
        $bus = $this->emptyBus($broker, $database);
        $manners = Manners::draw($this->options->messages);
        $faults = new Faults($this->ground, $this->options->workers, $this->options->rounds, $this->history);
        $sender = new Sender($broker, $faults, $this->history);
        $fleet = new Fleet($this->options->workers, [$this->options->transport, $this->ground->broker(), $this->ground->database()], $this->directory, $this->history);
        $audit = new Audit($bus, $database, self::QUEUE, $manners);

        $started = microtime(true);
        $running = async($fleet->run(...));
        $sending = async(static fn () => $sender->run($manners));
        $breaking = async(static fn () => $faults->run($fleet));
        $sending->await();
        $this->history->note("{$sender->sent} commands are sent");
        $breaking->await();
        $this->history->note('no more faults');
        $this->history->note($audit->awaitDrained($this->options->deadline) ? 'drained' : 'NOT drained');
        $fleet->stop(self::STOP_SECONDS);
        $running->await();
        $seconds = round(microtime(true) - $started, 1);
        $verdict = ['transport' => $this->options->transport, 'seed' => $this->options->seed, 'sent' => $sender->sent]
            + $audit->verdict() + ['faults' => $faults->done()] + self::workers($fleet) + ['seconds' => $seconds];
        $bus->close();
        $database->close();

        return $verdict;
    }

    private function emptyDatabase(): Database
    {
        $database = Database::connect($this->ground->directDatabase());
        foreach (self::TABLES as $table) {
            $database->execute("DROP TABLE IF EXISTS {$table}");
        }
        $database->execute('CREATE TABLE transfers (number INT NOT NULL)');
        $database->execute('CREATE TABLE bookings (number INT NOT NULL, listener INT NOT NULL)');

        return $database;
    }

    private function emptyBus(Transport $broker, Database $database): Bus
    {
        if ($broker instanceof RabbitMq) {
            // The run before may have had another kind of queue.
            $connection = Connection::connect($this->ground->broker());
            $connection->deleteQueue(self::QUEUE);
            $connection->deleteQueue(self::QUEUE . '.dead');
            $connection->close();
        }
        $bus = Bus::connect($broker, $database)->handlers(new Ledgers());
        $bus->queue(self::QUEUE)->declare();

        return $bus;
    }

    /** @return array<string, mixed> */
    private static function workers(Fleet $fleet): array
    {
        $progress = $fleet->progress();

        return [
            'duplicates_absorbed' => $progress['duplicates'] ?? 0,
            'retried' => $progress['retried'] ?? 0,
            'worker_crashes' => $fleet->crashed,
        ];
    }
}
