<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge;

use Weft\Tests\Extension;
use Weft\Tests\Timing;

/** An example application, served by Weft, by PHP's own server or by PHP-FPM, with a directory of its own for what it writes. */
abstract class ExampleSite
{
    private const NGINX = '/usr/sbin/nginx';

    /** @var list<resource> */
    private array $processes = [];

    private readonly string $log;

    public string $address = '';

    /**
     * @param string $example the directory of the application
     * @param array<string, string> $environment of its processes
     */
    protected function __construct(private readonly string $example, protected readonly string $directory, protected array $environment)
    {
        $this->log = "$directory/server.log";
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

    public function stop(): void
    {
        foreach (\array_reverse($this->processes) as $process) {
            \proc_terminate($process);
            Timing::until(static fn(): bool => !\proc_get_status($process)['running'], 'the server ends');
            \proc_close($process);
        }
        $this->processes = [];
    }

    /** The port of a mail server, which keeps what it receives. */
    protected function startMailServer(): string
    {
        $file = "$this->directory/smtp.port";
        $this->start([\PHP_BINARY, '-n', __DIR__ . '/smtp.php', "$this->directory/mails"], $file);
        Timing::until(static fn(): bool => \str_contains((string) @\file_get_contents($file), "\n"), 'the mail server listens');

        return \trim((string) \file_get_contents($file));
    }

    protected function serveByWeft(string ...$arguments): void
    {
        $this->start([...self::php(), ...\array_values($arguments)], $this->log);
        Timing::until(function (): bool {
            \preg_match('/listening on (\S+)/', $this->log(), $found);
            $this->address = $found[1] ?? '';

            return $this->address !== '';
        }, 'the server listens');
    }

    protected function serveByPhp(): void
    {
        $this->address = self::freeAddress();
        $this->start([...self::php(), '-d', 'variables_order=EGPCS', '-S', $this->address, '-t', 'public', 'public/index.php'], $this->log);
        $this->awaitAddress();
    }

    /** nginx in front of PHP-FPM, as it is usual; {@see fpm()} says where that is. */
    protected function serveByFpm(): void
    {
        $this->address = self::freeAddress();
        $public = \realpath("$this->example/public");
        $user = \posix_getpwuid(\posix_geteuid())['name'] ?? throw new \RuntimeException('this user has no name');
        foreach (['fpm.conf', 'nginx.conf'] as $file) {
            \file_put_contents("$this->directory/$file", \strtr((string) \file_get_contents(__DIR__ . "/$file"), [
                '@DIRECTORY@' => $this->directory, '@ADDRESS@' => $this->address, '@PUBLIC@' => $public, '@USER@' => $user,
            ]));
        }
        $extension = \array_slice(self::php(), 1);
        $this->start([(string) self::fpm(), '--nodaemonize', '--allow-to-run-as-root', '--fpm-config', "$this->directory/fpm.conf", ...$extension, '-d', 'variables_order=EGPCS'], $this->log);
        Timing::until(fn(): bool => \file_exists("$this->directory/fpm.sock"), 'PHP-FPM listens');
        $this->start([self::NGINX, '-p', $this->directory, '-e', "$this->directory/nginx.log", '-c', "$this->directory/nginx.conf"], $this->log);
        $this->awaitAddress();
    }

    /** PHP-FPM of this version of PHP; null where it or nginx is not installed. */
    public static function fpm(): ?string
    {
        $fpm = '/usr/sbin/php-fpm' . \PHP_MAJOR_VERSION . '.' . \PHP_MINOR_VERSION;

        return \is_executable($fpm) && \is_executable(self::NGINX) ? $fpm : null;
    }

    private function awaitAddress(): void
    {
        Timing::until(fn(): bool => @\stream_socket_client("tcp://{$this->address}") !== false, 'the server listens');
    }

    private static function freeAddress(): string
    {
        $socket = \stream_socket_server('tcp://127.0.0.1:0') ?: throw new \RuntimeException('no port is free');
        $address = (string) \stream_socket_get_name($socket, false);
        \fclose($socket);

        return $address;
    }

    /** Runs a command of the application's own program and returns what it prints. */
    protected function command(string $program, string ...$arguments): string
    {
        $errors = "$this->directory/$program.log";
        $process = \proc_open([...self::php(), $program, ...\array_values($arguments)], [1 => ['pipe', 'w'], 2 => ['file', $errors, 'w']], $pipes, $this->example, $this->environment);
        \assert(\is_resource($process));
        $output = (string) \stream_get_contents($pipes[1]);
        if (\proc_close($process) !== 0) {
            throw new \RuntimeException("$program {$arguments[0]} failed: $output" . \file_get_contents($errors));
        }

        return $output;
    }

    /** The same before the site is made: when it fails, nobody stops what was started for the site. */
    protected function prepare(string $program, string ...$arguments): void
    {
        try {
            $this->command($program, ...$arguments);
        } catch (\RuntimeException $failed) {
            $this->stop();
            throw $failed;
        }
    }

    /**
     * @param list<string> $command
     *
     * @return resource
     */
    protected function start(array $command, string $log)
    {
        $process = \proc_open($command, [1 => ['file', $log, 'a'], 2 => ['file', $log, 'a']], $pipes, $this->example, $this->environment);
        \assert(\is_resource($process));

        return $this->processes[] = $process;
    }

    /** @return list<string> with the extension that this process has */
    protected static function php(): array
    {
        return [\PHP_BINARY, '-d', 'extension=' . Extension::library()];
    }
}
