<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Laravel;

use Weft\Tests\Bridge\ExampleSite;
use Weft\Tests\Timing;

/** `examples/laravel`, with a mail server. */
final class Site extends ExampleSite
{
    private const EXAMPLE = __DIR__ . '/../../../examples/laravel';

    /** @param array<string, string> $environment */
    private function __construct(string $directory, array $environment, string $example = self::EXAMPLE)
    {
        parent::__construct($example, $directory, \getenv());
        foreach (['sessions', 'cache', 'views', 'logs', 'framework'] as $name) {
            \mkdir("$directory/$name");
        }
        \touch("$directory/app.db");
        $this->environment = $environment + [
            'APP_VAR' => $directory,
            'APP_SERVICES_CACHE' => "$directory/services.php",
            'APP_PACKAGES_CACHE' => "$directory/packages.php",
            'MAIL_PORT' => $this->startMailServer(),
        ] + $this->environment;
        $this->prepare('artisan', 'migrate', '--force');
    }

    /** @param array<string, string> $environment */
    public static function onWeft(string $directory, array $environment = []): self
    {
        $site = new self($directory, $environment + ['WEFT_LISTEN' => '127.0.0.1:0']);
        $site->serveByWeft('artisan', 'weft:serve');

        return $site;
    }

    /**
     * A copy of the example, whose files may change.
     *
     * @param array<string, string> $files that it has beside those of the example, by path
     * @param list<string> $options of `weft:serve`
     */
    public static function ofCopy(string $directory, array $files, array $options): self
    {
        $copy = self::copyIn($directory);
        \mkdir($copy, recursive: true);
        // The example finds the library two directories above it.
        \symlink(\dirname(self::EXAMPLE, 2) . '/autoload.php', "$directory/autoload.php");
        \exec('cp -r ' . \escapeshellarg(self::EXAMPLE) . '/. ' . \escapeshellarg($copy));
        foreach ($files as $path => $content) {
            \file_put_contents("$copy/$path", $content);
        }
        $site = new self($directory, ['WEFT_LISTEN' => '127.0.0.1:0'], $copy);
        $site->serveByWeft('artisan', 'weft:serve', ...$options);

        return $site;
    }

    public static function copyIn(string $directory): string
    {
        return "$directory/examples/laravel";
    }

    /** @param array<string, string> $environment */
    public static function onPhp(string $directory, array $environment = []): self
    {
        $site = new self($directory, $environment);
        $site->serveByPhp();

        return $site;
    }

    /** @param array<string, string> $environment */
    public static function onFpm(string $directory, array $environment = []): self
    {
        $site = new self($directory, $environment);
        $site->serveByFpm();

        return $site;
    }

    public function artisan(string ...$arguments): string
    {
        return $this->command('artisan', ...$arguments);
    }

    /**
     * @param \Closure(): bool $isBusy
     *
     * @return string what a worker logs that is stopped twice: after the second signal nothing goes on
     */
    public function stopWorkerAtOnce(\Closure $isBusy, string ...$options): string
    {
        $worker = $this->startWorker(...$options);
        Timing::until($isBusy, 'the worker is busy');
        \proc_terminate($worker, \SIGINT);
        // A second signal that arrives before the first was taken would be lost, and one after the second ends the process.
        $pause = static fn(): int => \hrtime(true) + 1_000_000_000;
        $next = $pause();
        Timing::until(static function () use ($worker, $pause, &$next): bool {
            if (\hrtime(true) > $next) {
                \proc_terminate($worker, \SIGTERM);
                $next = $pause();
            }

            return !\proc_get_status($worker)['running'];
        }, 'the worker ends');

        return $this->workerLog();
    }

    /** @return resource */
    public function startWorker(string ...$options)
    {
        return $this->start([...self::php(), 'artisan', 'weft:work', ...\array_values($options)], "$this->directory/worker.log");
    }

    public function workerLog(): string
    {
        return (string) @\file_get_contents("$this->directory/worker.log");
    }
}
