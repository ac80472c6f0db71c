<?php

declare(strict_types=1);

namespace Weft\Bench\Bus;

use Weft\Bench\BenchmarkException;
use Weft\Bench\CommandLine;

/** The options of the command line. */
final class Options
{
    public const USAGE = <<<'USAGE'
        usage: bench/bus/run [--short] [--commands=N] [--runs=N] [--only=NAME,…] [--persistent] [--matrix] [--timeout=SECONDS]
                             [--extension=FILE] [--out=FILE]

          --short       one run of 5000 messages: the shape of the table in a minute
          --commands    messages per run, 100000 unless the variable COMMANDS says otherwise
          --runs        runs of each contender, 3; they take turns
          --only        contenders: weft-plain weft-confirmed weft-safe weft-batch weft-batch-safe weft-postgres
                        weft-embedded
                        go pure-php symfony-messenger, or weft for its seven; all of them by default
          --persistent  messages survive a restart of the broker (delivery mode 2), for everyone
          --matrix      instead of the race: weft and its peers each with transient and persistent messages, without
                        and with publisher confirms; into bench/out/bus-matrix.json
          --timeout     seconds after which a run is ended and counts as failed, its other ones too, 600
          --extension   libweft.so, target/release/libweft.so
          --out         where the results go, bench/out/bus.json

        Starts RabbitMQ and PostgreSQL of this checkout unless AMQP_URL, DATABASE_URL and RABBITMQ_MANAGEMENT_URL
        are set; RABBITMQ_PROMETHEUS_URL beside them gives the time line. Exits with 1 when a run failed, lost a
        message or made one twice. SERVICE_BUS=/path adds php-service-bus, which Composer has installed in /path/vendor.

        USAGE;

    /** @param list<string> $only */
    private function __construct(
        public readonly int $commands,
        public readonly int $runs,
        public readonly array $only,
        public readonly bool $persistent,
        public readonly bool $matrix,
        public readonly float $timeout,
        public readonly string $extension,
        public readonly string $out,
        public readonly ?string $serviceBus,
    ) {
    }

    /**
     * @param list<string> $arguments without the program's name
     * @param string $root the repository
     *
     * @throws BenchmarkException for an unknown option or a number below 1
     */
    public static function parse(array $arguments, string $root): self
    {
        $short = in_array('--short', $arguments, true);
        $matrix = in_array('--matrix', $arguments, true);
        $line = CommandLine::parse($arguments, [
            'short' => '',
            'commands' => $short ? '5000' : (getenv('COMMANDS') ?: '100000'),
            'runs' => $short ? '1' : '3',
            'only' => '',
            'persistent' => '',
            'matrix' => '',
            'timeout' => '600',
            'extension' => "$root/target/release/libweft.so",
            'out' => "$root/bench/out/" . ($matrix ? 'bus-matrix.json' : 'bus.json'),
        ]);

        return new self(
            $line->positive('commands'),
            $line->positive('runs'),
            $line->names('only'),
            $line->flag('persistent'),
            $line->flag('matrix'),
            $line->positive('timeout'),
            $line->text('extension'),
            $line->text('out'),
            getenv('SERVICE_BUS') ?: null,
        );
    }
}
