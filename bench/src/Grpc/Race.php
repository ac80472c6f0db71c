<?php

declare(strict_types=1);

namespace Weft\Bench\Grpc;

use Weft\Bench\BenchmarkException;
use Weft\Bench\Cores;
use Weft\Bench\Load\Ghz;
use Weft\Bench\Load\H2load;
use Weft\Bench\Load\Load;
use Weft\Bench\Progress;
use Weft\Bench\TimedOut;

/** Calls the contenders in turn, and lets another one begin each time. */
final class Race
{
    /**
     * @param non-empty-list<Contender> $contenders
     * @param string $proto file with the service
     * @param string $logs directory
     */
    public function __construct(
        private readonly array $contenders,
        private readonly Ghz $ghz,
        private readonly string $proto,
        private readonly string $logs,
        private readonly Progress $progress,
    ) {
    }

    /**
     * @param list<Preset> $presets
     *
     * @return list<Run> in the order they ran
     */
    public function run(array $presets, int $rounds): array
    {
        $runs = [];
        for ($round = 0; $round < $rounds; ++$round) {
            foreach ($presets as $number => $preset) {
                foreach (array_keys($this->contenders) as $turn) {
                    $contender = $this->contenders[($round + $number + $turn) % count($this->contenders)];
                    $this->progress->start(sprintf('%-62s %-20s', $preset->name(), $contender->system));
                    $runs[] = $run = $this->attempt($contender, $preset);
                    $this->progress->finish($run->outcome());
                }
            }
        }

        return $runs;
    }

    public function stop(): void
    {
        array_map(static fn (Contender $contender) => $contender->stop(), $this->contenders);
    }

    private function attempt(Contender $contender, Preset $preset): Run
    {
        try {
            $server = $contender->server($this->logs);
            $cpu = $server->tree->cpuSeconds();
            $load = $this->load($contender->port(), $preset);
            $cpu = $server->tree->cpuSeconds() - $cpu;

            return Run::finished($contender->system, $preset, $load, $cpu, $server->tree->residentMib());
        } catch (BenchmarkException $failure) {
            $failure instanceof TimedOut && $contender->hung($failure);

            return Run::failed($contender->system, $preset, $failure->getMessage(), $contender->log());
        }
    }

    private function load(int $port, Preset $preset): Load
    {
        return match ($preset->tool) {
            'ghz' => $this->ghz->run(
                $port,
                $this->proto,
                "api.Users.{$preset->call->value}",
                $preset->call->data(),
                $preset->concurrency,
                $preset->connections,
                $preset->requests,
                Cores::load(),
            ),
            'h2load' => $this->canned($port, $preset),
        };
    }

    private function canned(int $port, Preset $preset): Load
    {
        $body = "{$this->logs}/{$preset->call->value}.bin";
        file_put_contents($body, $preset->call->frame());

        return H2load::run(
            "http://127.0.0.1:$port{$preset->call->path()}",
            $preset->connections,
            $preset->requests,
            Cores::load(),
            intdiv($preset->concurrency, $preset->connections),
            ["--data=$body", '--header=content-type: application/grpc', '--header=te: trailers'],
        );
    }
}
