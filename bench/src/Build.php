<?php

declare(strict_types=1);

namespace Weft\Bench;

/** Builds contenders of other languages. What the tools print goes to the error stream. */
final class Build
{
    /**
     * @param string $directory with a go.mod
     * @param string $program where it is put
     *
     * @throws BenchmarkException
     */
    public static function go(string $directory, string $program): void
    {
        self::run($directory, ['go', 'build', '-o', $program, '.'], 'it needs the Go version its go.mod names');
    }

    /**
     * @param string $directory with a Cargo.toml and a Cargo.lock, whose exact versions are taken
     * @param string $target where it is built; programs are in its directory `release`
     *
     * @throws BenchmarkException
     */
    public static function cargo(string $directory, string $target): void
    {
        self::run($directory, ['cargo', 'build', '--quiet', '--locked', '--release', '--target-dir', $target], 'it needs cargo and what its Cargo.lock names');
    }

    /**
     * @param string $directory with a package-lock.json, whose exact versions are installed beside it, once
     *
     * @throws BenchmarkException
     */
    public static function npm(string $directory): void
    {
        $installed = @filemtime("$directory/node_modules/.package-lock.json");
        if ($installed === false || $installed < filemtime("$directory/package-lock.json")) {
            self::run($directory, ['npm', 'ci', '--no-audit', '--no-fund', '--loglevel=error'], 'it needs npm');
        }
    }

    /**
     * @param \Closure(): void $build
     *
     * @return string|null why it failed; null when it did not
     */
    public static function failure(\Closure $build): ?string
    {
        try {
            $build();

            return null;
        } catch (BenchmarkException $failure) {
            fwrite(STDERR, "{$failure->getMessage()}\n");

            return $failure->getMessage();
        }
    }

    /** @param list<string> $command */
    private static function run(string $directory, array $command, string $hint): void
    {
        $line = implode(' ', array_map(escapeshellarg(...), $command));
        passthru('cd ' . escapeshellarg($directory) . " && $line >&2", $code);
        if ($code !== 0) {
            throw new BenchmarkException(implode(' ', $command) . " in $directory exited with code $code: $hint");
        }
    }
}
