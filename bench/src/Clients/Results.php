<?php

declare(strict_types=1);

namespace Weft\Bench\Clients;

use Weft\Bench\ResultsFile;
use Weft\Bench\Spread;
use Weft\Bench\Table;

/** All runs of one comparison. */
final class Results
{
    private const HEADER = ['load', 'client', 'operations/s', 'CPU µs each', 'rate of Weft ÷ peer', 'CPU of Weft ÷ peer'];

    /**
     * @param array<string, string> $versions by product
     * @param list<Run> $runs in the order they ran
     */
    public function __construct(
        public readonly string $machine,
        public readonly array $versions,
        public readonly array $runs,
    ) {
    }

    public function save(string $path): void
    {
        ResultsFile::save($path, [
            'machine' => $this->machine,
            'versions' => $this->versions,
            'runs' => array_map(static fn (Run $run): array => $run->toArray(), $this->runs),
        ]);
    }

    /** @return list<string> */
    public function failures(): array
    {
        return array_values(array_map(
            static fn (Run $run): string => "{$run->client} {$run->workload->value} round {$run->round}: {$run->failure}",
            array_filter($this->runs, static fn (Run $run): bool => $run->failure !== null),
        ));
    }

    public function table(): Table
    {
        $rows = [];
        foreach (Workload::cases() as $workload) {
            [$weft, $peer] = array_map(fn (string $client): array => $this->runsOf($workload, $client), $workload->contenders());
            if ($weft !== [] && $peer !== []) {
                $ratios = [self::ratio($weft, $peer, 'perSecond'), self::ratio($weft, $peer, 'cpu')];
                $rows[] = [$workload->value, ...self::cells($weft), ...$ratios];
                $rows[] = ['', ...self::cells($peer), '', ''];
            }
        }

        return new Table(self::HEADER, $rows);
    }

    /**
     * @param non-empty-array<int, Run> $runs
     *
     * @return list<string>
     */
    private static function cells(array $runs): array
    {
        return [
            reset($runs)->client,
            Spread::of(array_column($runs, 'perSecond'))->format(0),
            Spread::of(array_column($runs, 'cpu'))->format(1),
        ];
    }

    /**
     * The median of the ratios of the rounds: noise of the machine affects both clients of a round.
     *
     * @param array<int, Run> $weft by round
     * @param array<int, Run> $peer
     */
    private static function ratio(array $weft, array $peer, string $figure): string
    {
        $both = array_intersect_key($weft, $peer);

        return $both === [] ? '–' : Spread::of(array_map(static fn (Run $run): float => $run->$figure / $peer[$run->round]->$figure, $both))->format(2);
    }

    /** @return array<int, Run> by round */
    private function runsOf(Workload $workload, string $client): array
    {
        return array_column(
            array_filter($this->runs, static fn (Run $run): bool => $run->workload === $workload && $run->client === $client && $run->failure === null),
            null,
            'round',
        );
    }
}
