<?php

declare(strict_types=1);

namespace Weft\Bench\Chaos;

use Weft\Bench\BenchmarkException;
use Weft\Bench\CommandLine;

/** The options of the command line. */
final class Options
{
    public const USAGE = <<<'USAGE'
        usage: bench/chaos/run [--messages=N] [--seed=N] [--workers=N] [--rounds=N] [--transport=NAME]
                               [--deadline=SECONDS] [--out=FILE]

          --messages   commands that are sent, 20000 unless the variable MESSAGES says otherwise
          --seed       decides which faults come in which order after which pauses, and which messages fail; 1
          --workers    processes that consume, 3
          --rounds     how often each fault comes; 2, and once more for every 100,000 messages
          --transport  rabbitmq; quorum: the same with quorum queues; cluster: those on three nodes, of which one is killed and
                       comes back; postgres: broker and database are one; sqlite: likewise, and only workers are killed
          --deadline   seconds without any progress after which a missing message counts as lost; 170
          --out        where the result goes, bench/out/chaos.json; the history stands beside it as chaos.log

        Runs servers of its own in var/chaos and stops them at the end. Exits with 1 when anything was lost or had two
        effects, or when the wrong messages were dead-lettered.

        USAGE;

    private const TRANSPORTS = ['rabbitmq', 'quorum', 'cluster', 'postgres', 'sqlite'];

    private function __construct(
        public readonly string $root,
        public readonly int $messages,
        public readonly int $seed,
        public readonly int $workers,
        public readonly int $rounds,
        public readonly string $transport,
        public readonly float $deadline,
        public readonly string $out,
    ) {
    }

    /**
     * @param list<string> $arguments without the program's name
     * @param string $root the repository
     *
     * @throws BenchmarkException for an unknown option or value
     */
    public static function parse(array $arguments, string $root): self
    {
        $names = ['messages' => getenv('MESSAGES') ?: '20000', 'seed' => '1', 'workers' => '3', 'transport' => 'rabbitmq', 'out' => "{$root}/bench/out/chaos.json"];
        $messages = CommandLine::parse($arguments, $names + ['rounds' => '', 'deadline' => ''])->positive('messages');
        $line = CommandLine::parse($arguments, $names + [
            'rounds' => (string) (2 + intdiv($messages, 100_000)),
            'deadline' => '170',
        ]);
        $transport = $line->text('transport');
        in_array($transport, self::TRANSPORTS, true)
            || throw new BenchmarkException('--transport is one of ' . implode(', ', self::TRANSPORTS) . ", got '{$transport}'");

        return new self(
            $root,
            $messages,
            $line->positive('seed'),
            $line->positive('workers'),
            $line->positive('rounds'),
            $transport,
            (float) $line->positive('deadline'),
            $line->text('out'),
        );
    }
}
