<?php

declare(strict_types=1);

namespace Weft\Bench\Bus;

use Weft\Bench\BenchmarkException;
use Weft\Bench\Program;
use Weft\Bench\TimedOut;

/** One contender works off all messages on empty servers, and is judged. */
final class Turn
{
    /**
     * @param \Closure(Transport): Ground $grounds
     * @param float $timeout seconds after which the contender is ended
     */
    public function __construct(
        private readonly \Closure $grounds,
        private readonly int $commands,
        private readonly float $timeout,
    ) {
    }

    /**
     * A contender that does not end in time has had its turns: another round would cost as long again.
     *
     * @param string $log file that receives its error stream
     * @param (\Closure(float): void)|null $tick called every 20 ms with the seconds since the start
     */
    public function take(Contender $contender, string $log, ?\Closure $tick = null): Run
    {
        try {
            $contender->unavailable === null || throw new BenchmarkException($contender->unavailable);

            return $this->measure($contender, $log, $tick);
        } catch (TimedOut $failure) {
            $contender->unavailable = "{$failure->getMessage()}; it was not started again";

            return Run::failed($contender, $failure->getMessage(), $log);
        } catch (BenchmarkException | \PDOException $failure) {
            return Run::failed($contender, $failure->getMessage(), $log);
        }
    }

    private function measure(Contender $contender, string $log, ?\Closure $tick): Run
    {
        $ground = ($this->grounds)($contender->transport);
        $ground->reset();
        $timeline = $ground->timeline();
        $idle = $ground->cpu();
        $environment = $ground->environment() + $this->environment($contender);
        $usage = Program::run($contender->command, $environment, $log, $this->timeout, static function (float $elapsed) use ($timeline, $tick): void {
            $timeline->tick($elapsed);
            $tick === null || $tick($elapsed);
        });
        $servers = $idle === null ? null : $ground->cpu()?->since($idle);
        $timeline->finish($usage->seconds);
        $report = Report::parse($usage->output);

        return Run::finished($contender, $this->commands, $usage, $servers, $report, $ground->inspect($report), $timeline->toArray());
    }

    /** @return array<string, string> */
    private function environment(Contender $contender): array
    {
        return [
            'COMMANDS' => (string) $this->commands,
            'PERSISTENT' => $contender->isPersistent() ? '1' : '0',
            'MODE' => $contender->mode->value,
        ] + $contender->environment;
    }
}
