<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Symfony;

use Weft\Tests\Timing;

/** `examples/symfony`, served by Weft or by PHP's own server, with a directory of its own for what it writes. */
final class Site
{
    private const EXAMPLE = __DIR__ . '/../../../examples/symfony';

    /** @var resource|null */
    private $process = null;

    private readonly string $log;

    public string $address = '';

    /** @param array<string, string> $environment */
    private function __construct(private readonly string $directory, private readonly array $environment)
    {
        $this->log = "$directory/server.log";
    }

    /** @param array<string, string> $environment */
    public static function onWeft(string $directory, array $environment = []): self
    {
        $site = new self($directory, self::environment($directory) + $environment + ['WEFT_LISTEN' => '127.0.0.1:0'] + \getenv());
        $site->console('app:migrate');
        $site->start([\dirname(self::EXAMPLE, 2) . '/bin/weft', 'run', 'public/index.php']);
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
        $site = new self($directory, ['ON_WEFT' => '0'] + self::environment($directory) + $environment + \getenv());
        $site->console('app:migrate');
        $socket = \stream_socket_server('tcp://127.0.0.1:0') ?: throw new \RuntimeException('no port is free');
        $site->address = (string) \stream_socket_get_name($socket, false);
        \fclose($socket);
        $site->start(['-d', 'variables_order=EGPCS', '-S', $site->address, '-t', 'public', 'public/index.php']);
        Timing::until(static fn(): bool => @\stream_socket_client("tcp://{$site->address}") !== false, 'the server listens');

        return $site;
    }

    public function log(): string
    {
        return (string) @\file_get_contents($this->log);
    }

    /** @param string ...$arguments of the application's console */
    public function console(string ...$arguments): string
    {
        $process = \proc_open([...self::php(), 'console', ...$arguments], [1 => ['pipe', 'w'], 2 => ['file', "$this->directory/console.log", 'w']], $pipes, self::EXAMPLE, $this->environment);
        \assert(\is_resource($process));
        $output = (string) \stream_get_contents($pipes[1]);
        if (\proc_close($process) !== 0) {
            throw new \RuntimeException("console {$arguments[0]} failed: $output" . \file_get_contents("$this->directory/console.log"));
        }

        return $output;
    }

    public function stop(): void
    {
        if ($this->process !== null) {
            \proc_terminate($this->process);
            Timing::until(fn(): bool => !\proc_get_status($this->process)['running'], 'the server ends');
            \proc_close($this->process);
            $this->process = null;
        }
    }

    /** @param list<string> $command */
    private function start(array $command): void
    {
        $process = \proc_open([...self::php(), ...$command], [1 => ['file', $this->log, 'a'], 2 => ['file', $this->log, 'a']], $pipes, self::EXAMPLE, $this->environment);
        \assert(\is_resource($process));
        $this->process = $process;
    }

    /** @return list<string> with the extension that this process has */
    private static function php(): array
    {
        \preg_match('{\S+/libweft\.so}', (string) \file_get_contents('/proc/self/maps'), $library);

        return [\PHP_BINARY, '-d', 'extension=' . ($library[0] ?? 'weft')];
    }

    /** @return array<string, string> */
    private static function environment(string $directory): array
    {
        return [
            'APP_ENV' => 'prod',
            'APP_DEBUG' => '0',
            'APP_VAR' => $directory,
            'DATABASE_PATH' => "$directory/app.db",
            'BUS_DSN' => "sqlite:$directory/bus.db",
        ];
    }
}
