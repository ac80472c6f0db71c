<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Laravel;

use Weft\Tests\Cli\Supervised;

/** The application in `state/`, served with a directory of its own. */
trait ServesState
{
    private string $directory;
    private Supervised $server;
    private string $address;

    /** @param array<string, string> $environment */
    private function serveState(array $environment = []): void
    {
        $this->directory = \sys_get_temp_dir() . '/weft-laravel-' . \bin2hex(\random_bytes(6));
        \mkdir($this->directory);
        $this->server = new Supervised(__DIR__ . '/state/server.php', [], $environment + [
            'LISTEN' => '127.0.0.1:0',
            'APP_VAR' => $this->directory,
            'APP_SERVICES_CACHE' => "$this->directory/services.php",
            'APP_PACKAGES_CACHE' => "$this->directory/packages.php",
        ]);
        \preg_match('/\d+\.\d+\.\d+\.\d+:\d+/', (string) $this->server->wait('listening on')['message'], $address);
        $this->address = $address[0];
    }

    protected function tearDown(): void
    {
        if (!isset($this->server)) {
            return;
        }
        $this->server->signal(\SIGTERM);
        $this->server->end();
        \exec('rm -rf ' . \escapeshellarg($this->directory));
    }
}
