<?php

declare(strict_types=1);

namespace Weft\Cli\Internal;

/**
 * Says what is missing in a program that ends instead of serving. The front controllers of frameworks answer one request and end: each has a
 * way of its own to be served.
 *
 * @internal
 */
final class ServingAdvice
{
    private const SYMFONY = <<<'TEXT'
        %s is a front controller of Symfony, and the runtime in use answers one request. Set APP_RUNTIME='Weft\Bridge\Symfony\Runtime', or in composer.json
        {"extra": {"runtime": {"class": "Weft\\Bridge\\Symfony\\Runtime"}}} and run `composer dump-autoload` (docs/guides/symfony.md)
        TEXT;
    private const LARAVEL = '%s is a front controller of Laravel: serve it by `php artisan weft:serve` (docs/guides/laravel.md)';
    private const OTHER = '%s must end with App::run(), or call Worker::untilStopped() (docs/reference/operations.md). A script that answers one request is served by '
        . 'RealmHandler::script() (docs/guides/classic-php.md)';

    public static function of(string $file): string
    {
        $code = (string) \file_get_contents($file);

        return \sprintf(match (true) {
            \str_contains($code, 'autoload_runtime.php') => \strtr(self::SYMFONY, "\n", ' '),
            \preg_match('{Illuminate\\\\(Contracts\\\\Http\\\\Kernel|Http\\\\Request)\b}', $code) === 1 => self::LARAVEL,
            default => self::OTHER,
        }, $file);
    }
}
