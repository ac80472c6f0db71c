<?php

declare(strict_types=1);

namespace Weft\Workers\Internal;

use Weft\Native;

/**
 * The files whose change triggers a reload.
 *
 * @internal
 */
final class SourceFiles
{
    /** Extensions of files that an application reads when it starts. Data and logs that it writes must not restart it. */
    private const EXTENSIONS = ['php', 'phtml', 'env', 'ini', 'yaml', 'yml', 'neon', 'xml', 'twig', 'proto'];
    private const SKIPPED = ['node_modules', 'vendor', 'var', 'target', 'cache'];

    /** @var array<string, true> */
    private array $files = [];

    /** @var array<string, true> */
    private array $directories = [];

    /** @param list<string> $paths files, and directories with all that is in them */
    public function __construct(private readonly Native\Supervisor $supervisor, array $paths)
    {
        foreach ($paths as $path) {
            if (\is_dir($path)) {
                $this->watch($path);
                continue;
            }
            // An editor replaces a file: only its directory tells of the new one.
            $supervisor->watch(\dirname($path));
            $this->files[$path] = true;
        }
    }

    /** Whether a change of this path triggers a reload. A new directory is watched from now on. */
    public function contains(string $path): bool
    {
        if (isset($this->files[$path])) {
            return true;
        }
        if (!isset($this->directories[\dirname($path)])) {
            return false;
        }
        if (\is_dir($path)) {
            if (!self::isSkipped(\basename($path))) {
                $this->watch($path);
            }
            return false;
        }
        $extension = \strtolower(\pathinfo($path, \PATHINFO_EXTENSION));

        return \in_array($extension, self::EXTENSIONS, true) && !\str_starts_with(\basename($path), '.#');
    }

    private function watch(string $directory): void
    {
        $this->supervisor->watch($directory);
        $this->directories[$directory] = true;
        foreach (\scandir($directory) ?: [] as $name) {
            if (!self::isSkipped($name) && \is_dir("$directory/$name") && !\is_link("$directory/$name")) {
                $this->watch("$directory/$name");
            }
        }
    }

    private static function isSkipped(string $name): bool
    {
        return \str_starts_with($name, '.') || \in_array($name, self::SKIPPED, true);
    }
}
