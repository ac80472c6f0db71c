<?php

declare(strict_types=1);

namespace Weft\Bench\Scale;

use Weft\Bench\BenchmarkException;
use Weft\Bench\Bus\Contenders;
use Weft\Bench\Bus\Mode;
use Weft\Bench\Bus\Run;
use Weft\Bench\Bus\ServerGround;
use Weft\Bench\Bus\Transport;
use Weft\Bench\Bus\Turn;
use Weft\Bench\Failure;

/** The program of bench/bus with one number varied. */
final class BusPoints
{
    private const TIMEOUT_SECONDS = 900.0;
    private const MODES = [Mode::Plain, Mode::Safe];

    /** @param string $bench the directory bench/bus */
    public function __construct(
        private readonly ServerGround $ground,
        private readonly string $bench,
        private readonly string $extension,
        private readonly int $commands,
    ) {
    }

    /** @return list<Point> */
    public function of(Curve $curve, int $x): array
    {
        return match ($curve) {
            Curve::Concurrency => $this->rates($curve, $x, ['CONCURRENCY' => (string) $x]),
            Curve::PoolSize => $this->rates($curve, $x, ['POOL_SIZE' => (string) $x]),
            default => [new Point($curve, 'plain', $x, fn (string $log): array => $this->costs($x, $log))],
        };
    }

    /**
     * @param array<string, string> $environment
     *
     * @return list<Point>
     */
    private function rates(Curve $curve, int $x, array $environment): array
    {
        return array_map(fn (Mode $mode): Point => new Point(
            $curve,
            "weft {$mode->value}",
            $x,
            fn (string $log): array => ['' => $this->run($mode, $environment, $this->commands, $log)->number('commands_per_s')],
        ), self::MODES);
    }

    /** @return array<string, float> µs per message, by consumer */
    private function costs(int $messages, string $log): array
    {
        $run = $this->run(Mode::Plain, [], $messages, $log);
        $each = static fn (string $field): float => ($run->number($field) ?? 0.0) * 1e6 / $messages;

        return [
            'wall time' => $each('seconds'),
            'process CPU' => $each('cpu_s'),
            'broker CPU' => $each('broker_cpu_s'),
            'database CPU' => $each('database_cpu_s'),
        ];
    }

    /** @param array<string, string> $environment */
    private function run(Mode $mode, array $environment, int $commands, string $log): Run
    {
        $contender = Contenders::weft("weft-{$mode->value}", $mode, Transport::RabbitMq, $this->bench, $this->extension, $environment);
        $turn = new Turn(fn (): ServerGround => $this->ground, $commands, self::TIMEOUT_SECONDS);
        $run = $turn->take($contender, $log);
        $run->isPerfect() || throw new BenchmarkException($run->failure() === null ? $run->outcome() : Failure::describe($run->toArray()));

        return $run;
    }
}
