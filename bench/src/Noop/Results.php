<?php

declare(strict_types=1);

namespace Weft\Bench\Noop;

use Weft\Bench\ResultsFile;
use Weft\Bench\Spread;
use Weft\Bench\Table;

/** All runs of one comparison. */
final class Results
{
    private const HEADER = ['contender', 'publish/s', '× Go', 'CPU s', 'broker CPU s', 'consume/s', '× Go', 'CPU s', 'broker CPU s'];

    /**
     * @param array<string, string> $versions by product
     * @param list<Run> $runs in the order they ran
     */
    public function __construct(
        public readonly string $machine,
        public readonly array $versions,
        public readonly int $messages,
        public readonly array $runs,
    ) {
    }

    public function save(string $path): void
    {
        ResultsFile::save($path, [
            'machine' => $this->machine,
            'versions' => $this->versions,
            'messages' => $this->messages,
            'runs' => array_map(static fn (Run $run): array => $run->toArray(), $this->runs),
        ]);
    }

    public function isPerfect(): bool
    {
        return array_filter($this->runs, static fn (Run $run): bool => $run->failure !== null) === [];
    }

    public function table(): Table
    {
        $rows = [];
        foreach (array_unique(array_column($this->runs, 'contender')) as $name) {
            $rows[] = [$name, ...$this->cells($name, 'publish'), ...$this->cells($name, 'consume')];
        }

        return new Table(self::HEADER, $rows);
    }

    /** Rate of a contender to that of Go, of the medians; null when one of them is missing. */
    public function ratio(string $contender, string $action): ?float
    {
        [$own, $go] = [$this->runsOf($contender, $action), $this->runsOf('go', $action)];

        return $own === [] || $go === []
            ? null
            : Spread::of(array_column($own, 'perSecond'))->median / Spread::of(array_column($go, 'perSecond'))->median;
    }

    /** @return list<string> */
    private function cells(string $contender, string $action): array
    {
        $runs = $this->runsOf($contender, $action);
        $broker = array_filter(array_column($runs, 'brokerCpu'), is_float(...));
        $ratio = $this->ratio($contender, $action);

        return $runs === [] ? ['–', '–', '–', '–'] : [
            Spread::of(array_column($runs, 'perSecond'))->format(0),
            $ratio === null ? '–' : sprintf('%.2f', $ratio),
            Spread::of(array_column($runs, 'cpu'))->format(2),
            $broker === [] ? '–' : Spread::of($broker)->format(2),
        ];
    }

    /** @return list<Run> */
    private function runsOf(string $contender, string $action): array
    {
        return array_values(array_filter($this->runs, static fn (Run $run): bool => $run->contender === $contender && $run->action === $action));
    }
}
