<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Laravel;

use Weft\Tests\Bridge\ExampleSite;

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
        $this->prepare('artisan', 'migrate', '--force');
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

    public function artisan(string ...$arguments): string
    {
        return $this->command('artisan', ...$arguments);
    }
}
