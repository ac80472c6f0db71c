<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Console;

use Illuminate\Console\Command;
use Illuminate\Foundation\Application;
use Illuminate\Queue\WorkerOptions;
use Weft\Bridge\Internal\Setting;
use Weft\Bridge\Laravel\Internal\Applications;
use Weft\Bridge\Laravel\Internal\WorkerControl;
use Weft\Bridge\Laravel\Queue\QueueType;
use Weft\Bridge\Laravel\Queue\WeftQueue;
use Weft\Bus\Bus;
use Weft\Bus\ConsumeOptions;
use Weft\Bus\Internal\Clock;
use Weft\Log\StreamLogger;
use Weft\UsageError;

use function Weft\detach;
use function Weft\run;

/** `artisan weft:work`: handles the jobs of a queue of the driver `weft`, many at once, each in an application of its own. */
final class WorkCommand extends Command
{
    /** Seconds that are left where the time ends just as the worker goes on: zero would be no limit. */
    private const LEAST_SECONDS = 0.001;

    /** @var string */
    protected $signature = 'weft:work
        {connection? : A connection with the driver weft [default: the default one]}
        {--queue= : The queue, one [default: that of the connection]}
        {--concurrency=16 : Jobs at the same time}
        {--tries=1 : Attempts, unless the job says otherwise}
        {--backoff=0 : Seconds until a failed job is tried again, unless the job says otherwise}
        {--timeout=60 : Seconds that a job may run, unless the job says otherwise; 0: no limit}
        {--max-jobs=0 : Stop after so many jobs}
        {--max-time=0 : Stop after so many seconds}
        {--stop-when-empty : Stop when the queue is empty}
        {--force : Also in maintenance mode}';

    /** @var string */
    protected $description = 'Handle the jobs of a queue with Weft, many at once';

    public function handle(Application $application): int
    {
        $connection = (string) ($this->argument('connection') ?? $application->make('config')->get('queue.default'));
        $queue = $application->make('queue')->connection($connection);
        if (!$queue instanceof WeftQueue) {
            $this->error("The queue connection \"$connection\" has another driver than weft: use queue:work");

            return self::FAILURE;
        }
        try {
            $concurrency = $this->integer('concurrency', 1, ConsumeOptions::MAX_CONCURRENCY);
            $options = new WorkerOptions(backoff: $this->integer('backoff'), timeout: $this->integer('timeout'), maxTries: $this->integer('tries'));
            $limit = $this->integer('max-jobs');
            $seconds = Setting::seconds('--max-time', $this->option('max-time'), ConsumeOptions::MAX_STOP_AFTER);
            $name = $queue->name($this->option('queue') === null ? null : (string) $this->option('queue'));
            if (\str_contains($name, ',')) {
                throw new UsageError("--queue is \"$name\": weft:work handles the jobs of one queue, start one weft:work for each queue");
            }
            $handler = QueueType::handler($name);
            $logger = StreamLogger::fromEnvironment();
            $applications = Applications::of($application, $concurrency, $logger);
        } catch (UsageError | \ValueError $refused) {
            $this->error($refused->getMessage());

            return self::FAILURE;
        }
        $handled = run(function () use ($application, $applications, $queue, $connection, $name, $handler, $options, $concurrency, $limit, $seconds, $logger): int {
            $bus = $queue->buses()->bus(new $handler($applications->pool, $connection, $name, $options));
            $bus->queue($name)->declare();

            return $this->work($bus, $name, $concurrency, $limit, $seconds, new WorkerControl($application, (bool) $this->option('force'), $logger));
        });
        $this->line("$handled jobs handled", null, 'v');

        return self::SUCCESS;
    }

    /** @throws UsageError that names the option */
    private function integer(string $option, int $least = 0, int $most = \PHP_INT_MAX): int
    {
        return Setting::integer("--$option", $this->option($option), $least, $most);
    }

    /** @return int how many jobs were handled */
    private function work(Bus $bus, string $queue, int $concurrency, int $limit, float $seconds, WorkerControl $control): int
    {
        $until = $seconds > 0.0 ? Clock::monotonic() + $seconds : null;
        $stopWhenEmpty = (bool) $this->option('stop-when-empty');
        $handled = 0;
        do {
            if (($stopWhenEmpty && $control->isDown()) || !$control->awaitUp($until)) {
                break;
            }
            $watch = detach($control->stopInTime(...), $bus);
            try {
                $handled += $bus->consume($queue, $concurrency, new ConsumeOptions(
                    limit: $limit > 0 ? $limit - $handled : null,
                    stopWhenEmpty: $stopWhenEmpty,
                    stopAfter: $until === null ? null : \max(self::LEAST_SECONDS, $until - Clock::monotonic()),
                ));
            } finally {
                $watch->cancel('the worker has ended or pauses');
            }
        } while ($control->isDown() && ($limit <= 0 || $handled < $limit));

        return $handled;
    }
}
