<?php

declare(strict_types=1);

namespace Weft\Workers\Internal;

use Psr\Log\LoggerInterface;
use Weft\Native;
use Weft\Workers\SupervisorException;

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
    private const ENOENT = 2;
    private const ENOTDIR = 20;
    private const ENOSPC = 28;

    /** @var array<string, true> */
    private array $files = [];

    /** @var list<string> the directories that were to be watched with their subdirectories */
    private array $roots = [];
    /** @var array<string, bool> the watched directories; whether each has had a source file, those of its subdirectories not counted */
    private array $directories = [];

    /** @var array<string, true> the warnings that are logged already */
    private array $warned = [];

    /**
     * @param list<string> $paths files, and directories with all that is in them
     *
     * @throws SupervisorException one of the paths cannot be watched
     */
    public function __construct(private readonly Native\Supervisor $supervisor, private readonly LoggerInterface $log, array $paths)
    {
        foreach ($paths as $path) {
            if (\is_dir($path)) {
                $supervisor->watch($path);
                $this->roots[] = $path;
                $this->scan($path);
                continue;
            }
            // An editor replaces a file: only its directory tells of the new one.
            $supervisor->watch(\dirname($path));
            $this->files[$path] = true;
        }
    }

    /** Watches the directories that are new. */
    public function rescan(): void
    {
        foreach ($this->roots as $root) {
            $this->scan($root);
        }
    }

    /** Whether a change of this path triggers a reload. A new directory is watched from now on. */
    public function contains(string $path): bool
    {
        // The last event of a directory that is removed names the directory and no file in it.
        $path = \rtrim($path, '/');
        if (isset($this->files[$path])) {
            return true;
        }
        $hadSources = isset($this->directories[$path]) && $this->forget($path);
        $parent = \dirname($path);
        if (!isset($this->directories[$parent])) {
            return $hadSources;
        }
        if (self::isDirectory($path)) {
            $hasSources = !self::isSkipped(\basename($path)) && $this->watch($path);

            return $hasSources || $hadSources;
        }
        if (self::isSource(\basename($path))) {
            $this->directories[$parent] = true;

            return true;
        }

        return $hadSources;
    }

    /** Watches a directory and its subdirectories as far as possible. Returns whether there are source files in them. */
    private function watch(string $directory): bool
    {
        try {
            $this->supervisor->watch($directory);
        } catch (SupervisorException $failure) {
            $this->warn($directory, $failure);

            return false;
        }

        return $this->scan($directory);
    }

    /** Watches the subdirectories of a watched directory. Returns whether there are source files in any of them. */
    private function scan(string $directory): bool
    {
        $this->directories[$directory] = false;
        $hasSources = false;
        // The directory may be gone meanwhile.
        foreach (@\scandir($directory) ?: [] as $name) {
            if (self::isDirectory("$directory/$name")) {
                $hasSources = !self::isSkipped($name) && $this->watch("$directory/$name") || $hasSources;
            } elseif (self::isSource($name)) {
                $this->directories[$directory] = $hasSources = true;
            }
        }

        return $hasSources;
    }

    /** Forgets a directory that is gone or replaced, and its subdirectories. Returns whether there were source files in them. */
    private function forget(string $directory): bool
    {
        $hadSources = false;
        foreach ($this->directories as $known => $hasSources) {
            if ($known === $directory || \str_starts_with($known, "$directory/")) {
                unset($this->directories[$known]);
                $hadSources = $hadSources || $hasSources;
            }
        }

        return $hadSources;
    }

    /** Logs once why a directory is not watched. One that is gone meanwhile is no reason to warn. */
    private function warn(string $directory, SupervisorException $failure): void
    {
        // The operating system's part of the message: `Permission denied (os error 13)`.
        $reason = \preg_match('/[^:]+ \(os error (\d+)\)$/', $failure->getMessage(), $found) === 1 ? \ltrim($found[0]) : $failure->getMessage();
        $error = (int) ($found[1] ?? 0);
        // Beyond the limit every directory is refused: one warning stands for all of them.
        $subject = $error === self::ENOSPC ? '' : $directory;
        if ($error === self::ENOENT || $error === self::ENOTDIR || isset($this->warned[$subject])) {
            return;
        }
        $this->warned[$subject] = true;
        $error === self::ENOSPC
            ? $this->log->warning('{directory} and maybe others are not watched, the limit of watches is reached: raise it by `sysctl fs.inotify.max_user_watches=…`', ['directory' => $directory])
            : $this->log->warning('{directory} is not watched, its changes trigger no reload: {reason}', ['directory' => $directory, 'reason' => $reason]);
    }

    /** Directories behind symbolic links are not watched: a link may lead out of the project, or back to a directory above it. */
    private static function isDirectory(string $path): bool
    {
        return \is_dir($path) && !\is_link($path);
    }

    private static function isSource(string $name): bool
    {
        // An Emacs lock file is a link `.#name`.
        return \in_array(\strtolower(\pathinfo($name, \PATHINFO_EXTENSION)), self::EXTENSIONS, true) && !\str_starts_with($name, '.#');
    }

    private static function isSkipped(string $name): bool
    {
        return \str_starts_with($name, '.') || \in_array($name, self::SKIPPED, true);
    }
}
