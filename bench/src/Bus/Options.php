<?php

declare(strict_types=1);

namespace Weft\Bench\Bus;

use Weft\Bench\BenchmarkException;

/** What the command line asks for. */
final class Options
{
    public const USAGE = <<<'USAGE'
        usage: bench/bus/run [--commands=N] [--runs=N] [--only=NAME,…] [--persistent] [--timeout=SECONDS]
                             [--extension=FILE] [--out=FILE]

          --commands    messages per run, 100000 unless the variable COMMANDS says otherwise
          --runs        runs of each contender, 3; they take turns
          --only        contenders: weft-plain weft-confirmed weft-safe weft-embedded go pure-php
                        symfony-messenger, or weft for its four; all of them by default
          --persistent  messages survive a restart of the broker (delivery mode 2), for everyone
          --timeout     seconds after which a run is ended and counts as failed, 1200
          --extension   libweft.so, target/release/libweft.so
          --out         where the results go, bench/out/bus.json

        Starts RabbitMQ and PostgreSQL with scripts/services unless AMQP_URL, DATABASE_URL and
        RABBITMQ_MANAGEMENT_URL are set. Exits with 1 when a run failed, lost a message or made one twice.

        USAGE;

    /** @param list<string> $only */
    private function __construct(
        public readonly int $commands,
        public readonly int $runs,
        public readonly array $only,
        public readonly bool $persistent,
        public readonly float $timeout,
        public readonly string $extension,
        public readonly string $out,
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
        $values = ['commands' => getenv('COMMANDS') ?: '100000', 'runs' => '3', 'only' => '', 'timeout' => '1200'];
        $values += ['extension' => "$root/target/release/libweft.so", 'out' => "$root/bench/out/bus.json", 'persistent' => ''];
        foreach ($arguments as $argument) {
            if (!preg_match('/^--([a-z]+)(?:=(.+))?$/', $argument, $match) || !isset($values[$match[1]])) {
                throw new BenchmarkException("unknown option $argument\n" . self::USAGE);
            }
            $values[$match[1]] = $match[2] ?? '1';
        }

        return new self(
            self::positive('commands', $values['commands']),
            self::positive('runs', $values['runs']),
            $values['only'] === '' ? [] : explode(',', $values['only']),
            $values['persistent'] !== '',
            self::positive('timeout', $values['timeout']),
            $values['extension'],
            $values['out'],
        );
    }

    private static function positive(string $name, string $value): int
    {
        return ctype_digit($value) && (int) $value > 0
            ? (int) $value
            : throw new BenchmarkException("--$name must be a number above 0, got '$value'");
    }
}
