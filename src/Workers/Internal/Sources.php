<?php

declare(strict_types=1);

namespace Weft\Workers\Internal;

use Weft\Native;

/**
 * The files whose change makes new workers necessary.
 *
 * @internal
 */
final class Sources
{
    /** What an application reads when it starts; data and logs that it writes must not restart it. */
    private const EXTENSIONS = ['php', 'phtml', 'env', 'ini', 'yaml', 'yml', 'neon', 'xml', 'twig', 'proto'];
    private const SKIPPED = ['node_modules', 'vendor', 'var', 'target', 'cache'];

    /** @param list<string> $folders */
    public function __construct(private readonly Native\Supervisor $supervisor, array $folders)
    {
        foreach ($folders as $folder) {
            $this->watch($folder);
        }
    }

    /** Whether this path is one of them. A new folder is watched from now on. */
    public function concerns(string $path): bool
    {
        if (\is_dir($path)) {
            if (!self::isSkipped(\basename($path))) {
                $this->watch($path);
            }
            return false;
        }
        $extension = \strtolower(\pathinfo($path, \PATHINFO_EXTENSION));

        return \in_array($extension, self::EXTENSIONS, true) && !\str_starts_with(\basename($path), '.#');
    }

    private function watch(string $folder): void
    {
        $this->supervisor->watch($folder);
        foreach (\scandir($folder) ?: [] as $name) {
            if (!self::isSkipped($name) && \is_dir("$folder/$name") && !\is_link("$folder/$name")) {
                $this->watch("$folder/$name");
            }
        }
    }

    private static function isSkipped(string $name): bool
    {
        return \str_starts_with($name, '.') || \in_array($name, self::SKIPPED, true);
    }
}
