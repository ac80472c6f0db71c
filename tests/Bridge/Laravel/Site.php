<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Laravel;

use Weft\Tests\Bridge\ExampleSite;
use Weft\Tests\Timing;

/** `examples/laravel`, with a mail server. */
final class Site extends ExampleSite
{
    /** @param array<string, string> $environment */
    private function __construct(string $directory, array $environment)
    {
        parent::__construct(__DIR__ . '/../../../examples/laravel', $directory, \getenv());
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
        $this->artisan('migrate', '--force');
    }

    /** @param array<string, string> $environment */
    public static function onWeft(string $directory, array $environment = []): self
    {
        $site = new self($directory, $environment + ['WEFT_LISTEN' => '127.0.0.1:0']);
        $site->serveByWeft('artisan', 'weft:serve');

        return $site;
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

    /** What was sent by mail. */
    public function mails(): string
    {
        return (string) @\file_get_contents("$this->directory/mails");
    }

    public function artisan(string ...$arguments): string
    {
        return $this->command('artisan', ...$arguments);
    }

    /** The port of the mail server. */
    private function startMailServer(): string
    {
        $file = "$this->directory/smtp.port";
        $this->start([\PHP_BINARY, '-n', __DIR__ . '/smtp.php', "$this->directory/mails"], $file);
        Timing::until(static fn(): bool => \str_contains((string) @\file_get_contents($file), "\n"), 'the mail server listens');

        return \trim((string) \file_get_contents($file));
    }
}
