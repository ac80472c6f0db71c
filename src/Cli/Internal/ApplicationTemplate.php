<?php

declare(strict_types=1);

namespace Weft\Cli\Internal;

use Weft\Cli\NewApplicationException;
use Weft\Version;

/**
 * The application that `weft new` writes: a copy of `examples/starter`.
 *
 * @internal
 */
final class ApplicationTemplate
{
    /** The commands in the README of the example, for a library that Composer has installed. */
    private const COMMANDS = "composer install\nvendor/bin/weft run";

    /** The path of the library in its own example, which a copy must replace. */
    private const LIBRARY = "__DIR__ . '/../../autoload.php'";

    /** Not everything in that directory: work on the example leaves vendor, a lock file, caches and perhaps an .env there. */
    private const FILES = [
        '.dockerignore',
        '.gitignore',
        'Dockerfile',
        'README.md',
        'app.php',
        'app.service',
        'autoload.php',
        'bus.php',
        'composer.json',
        'phpunit.xml.dist',
        'src/Greet.php',
        'src/Greeted.php',
        'src/Greetings.php',
        'src/NewGreeting.php',
        'tests/GreetingsTest.php',
        'var/.gitkeep',
    ];

    /** @param string $library the directory of Weft */
    public function __construct(private readonly string $library)
    {
    }

    /**
     * @return list<string> the files, relative to the directory
     *
     * @throws NewApplicationException the directory has no name, is not empty or cannot be written
     */
    public function writeTo(string $directory): array
    {
        if ($directory === '') {
            throw new NewApplicationException('The name of the directory is empty: nothing was written');
        }
        $source = "{$this->library}/examples/starter";
        if (!\is_dir($source)) {
            throw new NewApplicationException("This installation of Weft has no template: $source does not exist");
        }
        if (\is_file($directory) || (\is_dir($directory) && \count((array) \scandir($directory)) > 2)) {
            throw new NewApplicationException("$directory exists and is not an empty directory: nothing was written");
        }
        foreach (self::FILES as $name) {
            self::write("$directory/$name", $this->adapted($name, (string) \file_get_contents("$source/$name")));
        }

        return self::FILES;
    }

    /**
     * The path without `..`, which PHP's functions read differently where a directory before it does not exist yet. After a symbolic link, `..`
     * is the parent of the directory to which the link leads.
     */
    public static function resolved(string $directory): string
    {
        if (!\in_array('..', \explode('/', $directory), true)) {
            return $directory;
        }
        $path = \str_starts_with($directory, '/') ? '' : (string) \getcwd();
        foreach (\explode('/', $directory) as $name) {
            $path = match ($name) {
                '', '.' => $path,
                '..' => \rtrim(\dirname(\realpath($path === '' ? '/' : $path) ?: $path), '/'),
                default => "$path/$name",
            };
        }

        return $path === '' ? '/' : $path;
    }

    private function adapted(string $name, string $contents): string
    {
        return match ($name) {
            'autoload.php' => \str_replace(self::LIBRARY, \var_export("{$this->library}/autoload.php", true), $contents),
            // The archive must have the version of the library.
            'Dockerfile' => (string) \preg_replace('/^ARG WEFT=.*$/m', 'ARG WEFT=' . Version::LIBRARY, $contents),
            'README.md' => $this->isComposerPackage() ? $contents : $this->withProgram($contents),
            'composer.json' => $this->isComposerPackage() ? $contents : $this->withRepository($contents),
            default => $contents,
        };
    }

    /** Composer has installed this library, so it knows where to find it. It does not know a checkout or an unpacked archive. */
    private function isComposerPackage(): bool
    {
        return \is_file("{$this->library}/../../autoload.php");
    }

    /** Without Composer, the program is that of this checkout or archive, as {@see \Weft\Cli\NewCommand} prints it. */
    private function withProgram(string $readme): string
    {
        $program = "{$this->library}/bin/weft";
        $command = \preg_match('{^[\w./-]+$}D', $program) === 1 ? $program : \escapeshellarg($program);

        return \str_replace(self::COMMANDS, "{$command} run", $readme) . "\nAfter `composer install`, `vendor/bin/weft` is the same program, and `vendor/bin/phpunit` runs the test.\n";
    }

    /**
     * Composer takes the package from this directory, as the release that it becomes: Composer installs no development version unasked. The
     * Dockerfile replaces the repository of this name by the one in the image.
     */
    private function withRepository(string $project): string
    {
        /** @var array<string, mixed> $fields */
        $fields = \json_decode($project, true, flags: \JSON_THROW_ON_ERROR);
        $repository = ['type' => 'path', 'url' => $this->library, 'options' => ['versions' => ['weft/weft' => \explode('-', Version::LIBRARY)[0]]]];
        // After name and type.
        $changed = \array_slice($fields, 0, 2) + ['repositories' => ['weft' => $repository]] + $fields;

        return \json_encode($changed, \JSON_PRETTY_PRINT | \JSON_UNESCAPED_SLASHES | \JSON_UNESCAPED_UNICODE | \JSON_THROW_ON_ERROR) . "\n";
    }

    private static function write(string $path, string $contents): void
    {
        $directory = \dirname($path);
        if (!\is_dir($directory) && !@\mkdir($directory, recursive: true) && !\is_dir($directory)) {
            throw new NewApplicationException("Cannot create the directory $directory: " . (\error_get_last()['message'] ?? ''));
        }
        if (@\file_put_contents($path, $contents) === false) {
            throw new NewApplicationException("Cannot write $path: " . (\error_get_last()['message'] ?? ''));
        }
    }
}
