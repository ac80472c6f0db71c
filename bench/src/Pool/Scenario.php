<?php

declare(strict_types=1);

namespace Weft\Bench\Pool;

use Weft\Runtime\CancelledException;

use function Weft\async;
use function Weft\delay;
use function Weft\scope;

/** What a request does: some queries that take their time, and a computation after them. */
final class Scenario
{
    public function __construct(private readonly Settings $settings, private readonly Connections $connections)
    {
    }

    /** @return bool whether everything worked; failures are printed */
    public function run(): bool
    {
        $tasks = [...array_fill(0, $this->settings->number('scenario.query_per_request'), $this->query(...)), ...$this->computations()];
        if (!$this->settings->flag('scenario.parallel_queries_execution')) {
            return array_product(array_map(static fn (\Closure $task): bool => $task(), $tasks)) === 1;
        }
        $outcomes = scope(static fn (): array => array_map(static fn (\Closure $task) => async($task), $tasks));

        return array_product(array_map(static fn ($task): bool => $task->await(), $outcomes)) === 1;
    }

    private function query(): bool
    {
        $seconds = $this->settings->randomSeconds('connection.min_query_duration_sec', 'connection.max_query_duration_sec');
        try {
            $this->connections->sleep($seconds);

            return true;
        } catch (CancelledException $cancelled) {
            throw $cancelled;
        } catch (\Throwable $failure) {
            fwrite(STDERR, $failure::class . ": {$failure->getMessage()}\n");

            return false;
        }
    }

    /** @return list<\Closure(): bool> */
    private function computations(): array
    {
        return $this->settings->seconds('scenario.cpu_load_per_request_max_sec') === 0.0 ? [] : [$this->compute(...)];
    }

    /** Keeps the processor busy, and everything else in this worker waiting. */
    private function compute(): bool
    {
        $seconds = $this->settings->randomSeconds('scenario.cpu_load_per_request_min_sec', 'scenario.cpu_load_per_request_max_sec');
        // What the queries sent leaves with the next turn of the loop, which this would hold up.
        delay(0.0);
        $end = hrtime(true) + $seconds * 1e9;
        while (hrtime(true) < $end) {
            md5(strrev(base64_encode(random_bytes(256))));
        }

        return true;
    }
}
