<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Symfony;

use Weft\Tests\Bridge\ExampleSite;

/** `examples/symfony`, with a mail server. */
final class Site extends ExampleSite
{
    private const EXAMPLE = __DIR__ . '/../../../examples/symfony';

    /** @param array<string, string> $environment */
    private function __construct(string $directory, array $environment)
    {
        parent::__construct(self::EXAMPLE, $directory, $environment + [
            'APP_ENV' => 'prod',
            'APP_DEBUG' => '0',
            'APP_VAR' => $directory,
            'DATABASE_PATH' => "$directory/app.db",
            'BUS_DSN' => "sqlite:$directory/bus.db",
        ] + \getenv());
        $this->environment += ['MAILER_DSN' => "smtp://127.0.0.1:{$this->startMailServer()}"];
        $this->prepare('console', 'app:migrate');
    }

    /** @param array<string, string> $environment */
    public static function onWeft(string $directory, array $environment = []): self
    {
        $site = new self($directory, $environment + ['WEFT_LISTEN' => '127.0.0.1:0']);
        $site->serveByWeft(\dirname(self::EXAMPLE, 2) . '/bin/weft', 'run', 'public/index.php');

        return $site;
    }

    /** @param array<string, string> $environment */
    public static function onPhp(string $directory, array $environment = []): self
    {
        $site = new self($directory, ['ON_WEFT' => '0'] + $environment);
        $site->serveByPhp();

        return $site;
    }

    /** @param array<string, string> $environment */
    public static function onFpm(string $directory, array $environment = []): self
    {
        $site = new self($directory, ['ON_WEFT' => '0'] + $environment);
        $site->serveByFpm();

        return $site;
    }

    /** @param string ...$arguments of the application's console */
    public function console(string ...$arguments): string
    {
        return $this->command('console', ...$arguments);
    }
}
