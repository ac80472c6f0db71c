<?php

declare(strict_types=1);

namespace Weft\Bench\Pool;

use Weft\Bench\BenchmarkException;
use Weft\Bench\CommandLine;
use Weft\Bench\ProcessTree;

/** The options of the command line. */
final class Options
{
    public const USAGE = <<<'USAGE'
        usage: bench/pool/run [--short] [--rounds=N] [--seconds=N] [--database=mysql|postgres] [--extension=FILE] [--out=FILE]

          --short      one round of two seconds
          --rounds     rounds of the five presets, 4
          --seconds    of load in each turn, 10
          --database   mysql, the server at WEFT_MYSQL_DSN, or postgres, the one at DATABASE_URL
          --extension  libweft.so, target/release/libweft.so
          --out        where the results go, bench/out/pool.json

        The variables are set by `. var/services/env` after `make services`. SWOOLE_EXTENSION=/path/swoole.so puts Swoole under the same
        loads. Exits with 1 when a request failed.

        USAGE;

    /** Variables of the URL and of the server's process. */
    private const DATABASES = ['mysql' => ['WEFT_MYSQL_DSN', 'WEFT_MYSQL_PID'], 'postgres' => ['DATABASE_URL', 'POSTGRES_PID']];

    private function __construct(
        public readonly int $rounds,
        public readonly int $seconds,
        public readonly string $database,
        public readonly string $url,
        public readonly ?ProcessTree $server,
        public readonly string $extension,
        public readonly ?string $swoole,
        public readonly string $out,
    ) {
    }

    /**
     * @param list<string> $arguments without the program's name
     * @param string $root the repository
     *
     * @throws BenchmarkException
     */
    public static function parse(array $arguments, string $root): self
    {
        $short = in_array('--short', $arguments, true);
        $line = CommandLine::parse($arguments, [
            'short' => '',
            'rounds' => $short ? '1' : '4',
            'seconds' => $short ? '2' : '10',
            'database' => 'mysql',
            'extension' => "$root/target/release/libweft.so",
            'out' => "$root/bench/out/pool.json",
        ]);
        $database = $line->text('database');
        [$variable, $pid] = self::DATABASES[$database] ?? throw new BenchmarkException("--database must be mysql or postgres, got '$database'");

        return new self(
            $line->positive('rounds'),
            $line->positive('seconds'),
            $database,
            Dsn::plain(getenv($variable) ?: throw new BenchmarkException("$variable is not set: run `make services` and `. var/services/env`")),
            getenv($pid) ? new ProcessTree((int) getenv($pid)) : null,
            $line->text('extension'),
            getenv('SWOOLE_EXTENSION') ?: null,
            $line->text('out'),
        );
    }
}
