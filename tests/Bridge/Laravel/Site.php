<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Laravel;

use Weft\Tests\Timing;

/** `examples/laravel`, served by Weft or by PHP's own server, with a directory of its own for what it writes, and a mail server. */
final class Site
{
    private const EXAMPLE = __DIR__ . '/../../../examples/laravel';

    /** @var list<resource> */
    private array $processes = [];

    private readonly string $log;

    public string $address = '';

    /** @var array<string, string> */
    private array $environment;

    /** @param array<string, string> $environment */
    private function __construct(private readonly string $directory, array $environment)
    {
        $this->log = "$directory/server.log";
        foreach (['sessions', 'cache', 'views', 'logs', 'framework'] as $name) {
            \mkdir("$directory/$name");
        }
        \touch("$directory/app.db");
        $this->environment = $environment + [
            'APP_VAR' => $directory,
            'APP_SERVICES_CACHE' => "$directory/services.php",
            'APP_PACKAGES_CACHE' => "$directory/packages.php",
            'MAIL_PORT' => $this->startMailServer(),
        ] + \getenv();
        $this->artisan('migrate', '--force');
    }

    /** @param array<string, string> $environment */
    public static function onWeft(string $directory, array $environment = []): self
    {
        $site = new self($directory, $environment + ['WEFT_LISTEN' => '127.0.0.1:0']);
        $site->start([...self::php(), 'artisan', 'weft:serve'], $site->log);
        Timing::until(static function () use ($site): bool {
            \preg_match('/listening on (\S+)/', $site->log(), $found);
            $site->address = $found[1] ?? '';

            return $site->address !== '';
        }, 'the server listens');

        return $site;
    }

    /** @param array<string, string> $environment */
    public static function onPhp(string $directory, array $environment = []): self
    {
        $site = new self($directory, $environment);
        $socket = \stream_socket_server('tcp://127.0.0.1:0') ?: throw new \RuntimeException('no port is free');
        $site->address = (string) \stream_socket_get_name($socket, false);
        \fclose($socket);
        $site->start([...self::php(), '-d', 'variables_order=EGPCS', '-S', $site->address, '-t', 'public', 'public/index.php'], $site->log);
        Timing::until(static fn(): bool => @\stream_socket_client("tcp://{$site->address}") !== false, 'the server listens');

        return $site;
    }

    public function log(): string
    {
        return (string) @\file_get_contents($this->log);
    }

    /** What was sent by mail. */
    public function mails(): string
    {
        return (string) @\file_get_contents("$this->directory/mails");
    }

    public function artisan(string ...$arguments): string
    {
        $process = \proc_open([...self::php(), 'artisan', ...$arguments], [1 => ['pipe', 'w'], 2 => ['file', "$this->directory/artisan.log", 'w']], $pipes, self::EXAMPLE, $this->environment);
        \assert(\is_resource($process));
        $output = (string) \stream_get_contents($pipes[1]);
        if (\proc_close($process) !== 0) {
            throw new \RuntimeException("artisan {$arguments[0]} failed: $output" . \file_get_contents("$this->directory/artisan.log"));
        }

        return $output;
    }

    public function stop(): void
    {
        foreach (\array_reverse($this->processes) as $process) {
            \proc_terminate($process);
            Timing::until(static fn(): bool => !\proc_get_status($process)['running'], 'the server ends');
            \proc_close($process);
        }
        $this->processes = [];
    }

    /** The port of the mail server. */
    private function startMailServer(): string
    {
        $this->environment = \getenv();
        $file = "$this->directory/smtp.port";
        $this->start([\PHP_BINARY, '-n', __DIR__ . '/smtp.php', "$this->directory/mails"], $file);
        Timing::until(static fn(): bool => \str_contains((string) @\file_get_contents($file), "\n"), 'the mail server listens');

        return \trim((string) \file_get_contents($file));
    }

    /** @param list<string> $command */
    private function start(array $command, string $log): void
    {
        $process = \proc_open($command, [1 => ['file', $log, 'a'], 2 => ['file', $log, 'a']], $pipes, self::EXAMPLE, $this->environment);
        \assert(\is_resource($process));
        $this->processes[] = $process;
    }

    /** @return list<string> with the extension that this process has */
    private static function php(): array
    {
        \preg_match('{\S+/libweft\.so}', (string) \file_get_contents('/proc/self/maps'), $library);

        return [\PHP_BINARY, '-d', 'extension=' . ($library[0] ?? 'weft')];
    }
}
