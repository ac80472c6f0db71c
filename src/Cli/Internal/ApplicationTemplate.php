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
    /** The path of the library in its own example, which a copy must replace. */
    private const LIBRARY = "__DIR__ . '/../../autoload.php'";

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
        $files = [];
        $found = new \RecursiveIteratorIterator(new \RecursiveDirectoryIterator($source, \FilesystemIterator::SKIP_DOTS));
        foreach ($found as $file) {
            \assert($file instanceof \SplFileInfo);
            $name = \substr($file->getPathname(), \strlen($source) + 1);
            if (!\str_starts_with($name, 'var/') || $name === 'var/.gitkeep') {
                $files[] = $name;
            }
        }
        \sort($files);
        foreach ($files as $name) {
            self::write("$directory/$name", $this->adapted($name, (string) \file_get_contents("$source/$name")));
        }

        return $files;
    }

    private function adapted(string $name, string $contents): string
    {
        return match ($name) {
            'autoload.php' => \str_replace(self::LIBRARY, \var_export("{$this->library}/autoload.php", true), $contents),
            // The archive must have the version of the library.
            'Dockerfile' => (string) \preg_replace('/^ARG WEFT=.*$/m', 'ARG WEFT=' . Version::LIBRARY, $contents),
            'composer.json' => $this->isCheckout() ? $this->withRepository($contents) : $contents,
            default => $contents,
        };
    }

    /** Weft's repository, and not a package that Composer has installed. */
    private function isCheckout(): bool
    {
        return \is_file("{$this->library}/Cargo.toml") && !\is_file("{$this->library}/../../autoload.php");
    }

    /** Composer takes the package from the checkout, as the release that it becomes: Composer installs no development version unasked. */
    private function withRepository(string $project): string
    {
        /** @var array<string, mixed> $fields */
        $fields = \json_decode($project, true, flags: \JSON_THROW_ON_ERROR);
        $repository = ['type' => 'path', 'url' => $this->library, 'options' => ['versions' => ['weft/weft' => \explode('-', Version::LIBRARY)[0]]]];
        // After name and type.
        $changed = \array_slice($fields, 0, 2) + ['repositories' => [$repository]] + $fields;

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
