<?php

declare(strict_types=1);

namespace Weft\Bench;

/** Which versions take part in a comparison. An empty one is of something that is not installed. */
final class Versions
{
    /** @param string $root the repository */
    public static function weft(string $root): string
    {
        return self::output('git -C ' . escapeshellarg($root) . ' describe --always --tags');
    }

    /** @param string $command whose output holds the version, on either stream */
    public static function of(string $command): string
    {
        return preg_match('/\d+\.\d+[\w.]*/', self::output("$command 2>&1"), $match) ? $match[0] : '';
    }

    /** @param string $file a go.mod */
    public static function module(string $file, string $name): string
    {
        $modules = (string) @file_get_contents($file);

        return preg_match('#' . preg_quote($name, '#') . ' v(\S+)#', $modules, $match) ? $match[1] : '';
    }

    /** @param string $directory with a package.json that names exact versions */
    public static function npm(string $directory, string $name): string
    {
        return json_decode((string) @file_get_contents("$directory/package.json"), true)['dependencies'][$name] ?? '';
    }

    /** @param string $directory with a Cargo.lock */
    public static function crate(string $directory, string $name): string
    {
        $lock = (string) @file_get_contents("$directory/Cargo.lock");

        return preg_match('/^name = "' . preg_quote($name, '/') . '"\nversion = "([^"]+)"$/m', $lock, $match) ? $match[1] : '';
    }

    /** @param string $directory whose packages Composer has installed in vendor/ */
    public static function composer(string $directory, string $package): string
    {
        $installed = json_decode((string) @file_get_contents("$directory/vendor/composer/installed.json"), true)['packages'] ?? [];

        return ltrim(array_column($installed, 'version', 'name')[$package] ?? '', 'v');
    }

    /** @param string $name of a Debian package */
    public static function package(string $name): string
    {
        return preg_match('/^[^+-]+/', self::output("dpkg-query -W -f '\${Version}' $name 2>/dev/null"), $match) ? $match[0] : '';
    }

    /** @return array<string, string> of the frameworks that Debian's packages hold, by product */
    public static function frameworks(): array
    {
        return [
            'symfony' => self::package('php-symfony-http-kernel'),
            'laravel' => self::package('php-laravel-framework'),
            'doctrine-orm' => self::package('php-doctrine-orm'),
        ];
    }

    /** @param string|null $extension path of swoole.so */
    public static function swoole(?string $extension): string
    {
        return $extension === null ? '' : self::output(PHP_BINARY . ' -d extension=' . escapeshellarg($extension) . " -r 'echo SWOOLE_VERSION;' 2>/dev/null");
    }

    /** @param string|null $binary of FrankenPHP; the version of its own PHP */
    public static function frankenPhp(?string $binary): string
    {
        return $binary === null ? '' : self::of(escapeshellarg($binary) . ' version') . ' (PHP ' . self::output(escapeshellarg($binary) . " php-cli -r 'echo PHP_VERSION;' 2>/dev/null") . ')';
    }

    /** @param string|null $binary of RoadRunner */
    public static function roadRunner(?string $binary): string
    {
        return $binary === null ? '' : self::of(escapeshellarg($binary) . ' --version');
    }

    private static function output(string $command): string
    {
        return trim((string) shell_exec("$command"));
    }
}
