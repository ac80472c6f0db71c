<?php

declare(strict_types=1);

namespace Weft\Bench\Grpc;

use Weft\Bench\BenchmarkException;
use Weft\Bench\Build;
use Weft\Bench\DiskFlush;
use Weft\Bench\Load\Ghz;
use Weft\Bench\Machine;
use Weft\Bench\Progress;
use Weft\Bench\Spread;
use Weft\Bench\Versions;

/** The whole comparison, from the command line to the results. */
final class Benchmark
{
    private readonly string $bench;
    private readonly string $out;

    /** @param string $root the repository */
    public function __construct(private readonly string $root, private readonly Options $options)
    {
        $this->bench = "$root/bench/grpc";
        $this->out = "$root/bench/out";
    }

    public function run(): Results
    {
        @mkdir("{$this->out}/grpc-logs", recursive: true);
        $ghz = Ghz::install($this->root);
        $contenders = $this->contenders();
        Machine::warnWhenBusy();
        $presets = array_values(array_filter(
            Preset::all($this->options->long, $this->options->seconds),
            fn (Preset $preset): bool => $preset->isOneOf($this->options->tools),
        ));
        $progress = new Progress(count($presets) * count($contenders) * $this->options->rounds);
        $race = new Race($contenders, $ghz, "{$this->bench}/users.proto", "{$this->out}/grpc-logs", $progress);
        try {
            $runs = $race->run($presets, $this->options->rounds);
        } finally {
            $race->stop();
        }
        $results = new Results(Machine::describe(Spread::of([DiskFlush::microseconds($this->out)])), $this->versions($ghz), $runs);
        $results->save($this->options->out);

        return $results;
    }

    /** @return non-empty-list<Contender> */
    private function contenders(): array
    {
        $all = Contender::all($this->bench, $this->out, $this->options->extension);
        $systems = array_map(static fn (Contender $contender): string => $contender->system, $all);
        foreach (array_diff($this->options->only, $systems) as $name) {
            throw new BenchmarkException("there is no contender '$name', there are: " . implode(' ', $systems));
        }
        $wanted = $this->options->only ?: $systems;
        $selected = array_values(array_filter($all, static fn (Contender $contender): bool => in_array($contender->system, $wanted, true)));
        foreach ($selected as $contender) {
            $contender->unavailable = match ($contender->system) {
                'go' => Build::failure(fn () => Build::go("{$this->bench}/peers/go", "{$this->out}/grpc-go")),
                'tonic' => Build::failure(fn () => Build::cargo("{$this->bench}/peers/tonic", "{$this->out}/grpc-tonic")),
                'node' => Build::failure(fn () => Build::npm("{$this->bench}/peers/node")),
                default => null,
            };
        }

        return $selected;
    }

    /** @return array<string, string> */
    private function versions(Ghz $ghz): array
    {
        $peers = "{$this->bench}/peers";

        return array_filter([
            'weft' => Versions::weft($this->root),
            'php' => PHP_VERSION,
            'go' => Versions::of('go version'),
            'grpc-go' => Versions::module("$peers/go/go.mod", 'google.golang.org/grpc'),
            'rust' => Versions::of('rustc --version'),
            'tonic' => Versions::crate("$peers/tonic", 'tonic'),
            'node' => Versions::of('node --version'),
            'grpc-js' => Versions::npm("$peers/node", '@grpc/grpc-js'),
            'ghz' => $ghz->version(),
            'h2load' => Versions::of('h2load --version'),
        ]);
    }
}
