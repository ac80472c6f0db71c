<?php

declare(strict_types=1);

namespace Weft\Bench\Hooks;

use Weft\Bench\BenchmarkException;
use Weft\Bench\CommandLine;

/** The options of the command line. */
final class Options
{
    public const USAGE = <<<'USAGE'
        usage: bench/hooks/run --extension=FILE [--rounds=N] [--seconds=N] [--short] [--parts=NAME,…] [--loads=NAME,…]
                               [--connections=N,…] [--only=NAME,…] [--workers=N] [--database=PLACE]
                               [--out=FILE]

          --extension    libweft.so, built with optimisations
          --rounds       of all contenders in turns, 6
          --seconds      of load in each turn, 2
          --short        two rounds of a second each
          --parts        waits,cost,http: what is measured; the published page needs all three
          --loads        query,call: of the part http
          --connections  8,64,256: of the part http
          --only         servers of the part http: weft php-fpm swoole; all of them by default
          --workers      of the part http: processes of Weft and Swoole, 1; with more of them nothing is bound to a core
          --database     of the part http with 1 worker: load (PostgreSQL runs on the core of the load generator, so that the server has a core to
                         itself) or anywhere (where the kernel places it)
          --out          file for the results, bench/out/hooks.json

        SWOOLE_EXTENSION=/path/swoole.so adds Swoole with all its hooks to the comparison of servers.

        USAGE;

    public const PARTS = ['waits', 'cost', 'http'];
    public const LOADS = ['query', 'call'];
    public const DATABASES = ['load', 'anywhere'];
    public const SERVERS = ['weft', 'php-fpm', 'swoole'];

    /**
     * @param list<string> $parts
     * @param list<string> $loads
     * @param list<int> $connections
     * @param list<string> $only
     */
    private function __construct(
        public readonly string $extension,
        public readonly int $rounds,
        public readonly int $seconds,
        public readonly array $parts,
        public readonly array $loads,
        public readonly array $connections,
        public readonly array $only,
        public readonly int $workers,
        public readonly string $database,
        public readonly string $out,
        public readonly ?string $swoole,
    ) {
    }

    /**
     * @param list<string> $arguments without the program's name
     * @param string $root the repository
     *
     * @throws BenchmarkException for an unknown option or name, or a file that is missing
     */
    public static function parse(array $arguments, string $root): self
    {
        $short = in_array('--short', $arguments, true);
        $line = CommandLine::parse($arguments, [
            'short' => '',
            'extension' => "$root/target/release/libweft.so",
            'rounds' => $short ? '2' : '6',
            'seconds' => $short ? '1' : '2',
            'parts' => implode(',', self::PARTS),
            'loads' => implode(',', self::LOADS),
            'connections' => '8,64,256',
            'only' => implode(',', self::SERVERS),
            'workers' => '1',
            'database' => self::DATABASES[0],
            'out' => "$root/bench/out/hooks.json",
        ]);
        $swoole = getenv('SWOOLE_EXTENSION') ?: null;
        foreach (array_filter([$line->text('extension'), $swoole]) as $file) {
            is_file($file) || throw new BenchmarkException("there is no $file");
        }

        return new self(
            $line->text('extension'),
            $line->positive('rounds'),
            $line->positive('seconds'),
            self::known($line, 'parts', self::PARTS),
            self::known($line, 'loads', self::LOADS),
            $line->positives('connections'),
            self::known($line, 'only', self::SERVERS),
            $line->positive('workers'),
            self::known($line, 'database', self::DATABASES)[0],
            $line->text('out'),
            $swoole,
        );
    }

    /**
     * @param list<string> $known
     *
     * @return list<string>
     */
    private static function known(CommandLine $line, string $option, array $known): array
    {
        $names = $line->names($option);
        $unknown = array_diff($names, $known);
        $unknown === [] || throw new BenchmarkException("--$option has no " . implode(', ', $unknown) . ', there are: ' . implode(' ', $known));

        return $names;
    }
}
