<?php

declare(strict_types=1);

namespace Weft\Bench\Frameworks;

use Weft\Bench\BenchmarkException;
use Weft\Bench\CommandLine;
use Weft\Bench\RoadRunner;

/** The options of the command line. */
final class Options
{
    public const USAGE = <<<'USAGE'
        usage: bench/frameworks/run --extension=FILE [--rounds=N] [--seconds=N] [--frameworks=NAME,…] [--endpoints=NAME,…]
                                   [--only=NAME,…] [--short] [--append] [--out=FILE]

          --extension   libweft.so, built with optimisations
          --rounds      of all systems in turns, 3
          --seconds     of each load, 4
          --connections of each load, 8 and 64
          --frameworks  those of bench/frameworks, all
          --endpoints   page,compute
          --only        systems: weft php-fpm frankenphp roadrunner swoole; all of them by default
          --short       one round of two seconds
          --append      adds the rounds to those in the file for the results, with as many workers as there
          --out         file for the results, bench/out/frameworks.json

        SWOOLE_EXTENSION=/path/swoole.so adds Swoole with all its hooks, FRANKENPHP=/path/frankenphp FrankenPHP in worker mode,
        ROADRUNNER=/path/rr with ROADRUNNER_AUTOLOAD=/path/vendor/autoload.php RoadRunner. bench/frameworks/README.md says where they come from.

        USAGE;

    public const ENDPOINTS = ['page', 'compute'];
    public const SYSTEMS = ['weft', 'php-fpm', 'frankenphp', 'roadrunner', 'swoole'];

    /**
     * @param list<int> $connections
     * @param list<string> $frameworks
     * @param list<string> $endpoints
     * @param list<string> $only
     */
    private function __construct(
        public readonly string $extension,
        public readonly int $rounds,
        public readonly int $seconds,
        public readonly array $connections,
        public readonly array $frameworks,
        public readonly array $endpoints,
        public readonly array $only,
        public readonly string $out,
        public readonly ?string $swoole,
        public readonly ?string $frankenPhp,
        public readonly ?string $roadRunner,
        public readonly bool $appends,
    ) {}

    /**
     * @param list<string> $arguments without the program's name
     * @param string $root the repository
     *
     * @throws BenchmarkException for an unknown option or a file that is missing
     */
    public static function parse(array $arguments, string $root): self
    {
        $short = \in_array('--short', $arguments, true);
        $line = CommandLine::parse($arguments, [
            'extension' => "$root/target/release/libweft.so",
            'rounds' => $short ? '1' : '3',
            'seconds' => $short ? '2' : '4',
            'connections' => '8,64',
            'frameworks' => implode(',', array_map(static fn(string $file): string => basename(\dirname($file)), glob("$root/bench/frameworks/*/weft.php") ?: [])),
            'endpoints' => implode(',', self::ENDPOINTS),
            'only' => implode(',', self::SYSTEMS),
            'short' => '0',
            'append' => '0',
            'out' => "$root/bench/out/frameworks.json",
        ]);
        $swoole = getenv('SWOOLE_EXTENSION') ?: null;
        $frankenPhp = getenv('FRANKENPHP') ?: null;
        foreach (array_filter([$line->text('extension'), $swoole, $frankenPhp]) as $file) {
            is_file($file) || throw new BenchmarkException("there is no $file");
        }
        foreach ($line->names('frameworks') as $framework) {
            is_file("$root/bench/frameworks/$framework/weft.php") || throw new BenchmarkException("there is no bench/frameworks/$framework");
        }

        return new self((string) realpath($line->text('extension')), $line->positive('rounds'), $line->positive('seconds'), $line->positives('connections'), $line->names('frameworks'), self::subset($line, 'endpoints', self::ENDPOINTS), self::subset($line, 'only', self::SYSTEMS), $line->text('out'), $swoole, $frankenPhp, RoadRunner::fromEnvironment(), $line->flag('append'));
    }

    /** @return list<string> which peers take no part, and the variables that name them */
    public function absent(): array
    {
        return array_keys(array_filter([
            'swoole (SWOOLE_EXTENSION)' => $this->swoole === null,
            'frankenphp (FRANKENPHP)' => $this->frankenPhp === null,
            'roadrunner (ROADRUNNER, ROADRUNNER_AUTOLOAD)' => $this->roadRunner === null,
        ]));
    }

    /**
     * @param list<string> $all
     *
     * @return list<string>
     */
    private static function subset(CommandLine $line, string $option, array $all): array
    {
        foreach (array_diff($line->names($option), $all) as $name) {
            throw new BenchmarkException("--$option has no $name, there are: " . implode(' ', $all));
        }

        return $line->names($option);
    }
}
