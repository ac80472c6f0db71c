<?php

declare(strict_types=1);

namespace Weft\Site;

/**
 * Loads what Weft's bridges extend, so that they can be reflected: from the include path, where Debian has its packages, or as an empty
 * stand-in, since a reference needs only the names. For a process that does nothing else.
 */
final class ForeignClasses
{
    private function __construct() {}

    /** @param bool $standIns whether classes that are not installed are made up */
    public static function register(bool $standIns = true): void
    {
        // Debian has its traits elsewhere than their names say.
        $laravel = \stream_resolve_include_path('Illuminate/autoload.php');
        $laravel === false || require_once $laravel;
        \spl_autoload_register(static function (string $class) use ($standIns): void {
            $namespace = (string) \strstr($class, '\\', true);
            if (!\in_array($namespace, ['Cron', 'Doctrine', 'Illuminate', 'Laravel', 'Psr', 'Symfony'], true)) {
                return;
            }
            $file = \stream_resolve_include_path(\strtr($class, '\\', '/') . '.php');
            if ($file !== false) {
                require_once $file;

                return;
            }
            if (!$standIns) {
                return;
            }
            $at = (int) \strrpos($class, '\\');
            $kind = \str_ends_with($class, 'Interface') || \str_contains($class, '\\Contracts\\') ? 'interface' : 'class';
            eval('namespace ' . \substr($class, 0, $at) . "; $kind " . \substr($class, $at + 1) . ' {}');
        });
    }
}
