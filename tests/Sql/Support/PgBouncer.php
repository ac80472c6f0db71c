<?php

declare(strict_types=1);

namespace Weft\Tests\Sql\Support;

/** A PgBouncer of its own on a free port, in front of the PostgreSQL server of the tests. */
final class PgBouncer
{
    private const PROGRAM = '/usr/sbin/pgbouncer';
    private const VERSION_WITH_PREPARED_STATEMENTS = '1.21';

    public readonly int $port;

    private readonly string $directory;

    /** @var resource */
    private $process;

    /** @param array{host: string, port: int, user: string, pass: string} $server */
    public function __construct(private readonly array $server, string $poolMode, int $serverConnections)
    {
        \is_executable(self::PROGRAM) || throw new \RuntimeException(self::PROGRAM . ' is not there: scripts/setup test installs it');
        $this->port = self::freePort();
        $this->directory = \sys_get_temp_dir() . '/weft-pgbouncer-' . \bin2hex(\random_bytes(6));
        \mkdir($this->directory, 0o755);
        \file_put_contents("{$this->directory}/users.txt", "\"{$server['user']}\" \"{$server['pass']}\"\n");
        $prepared = self::keepsPreparedStatements() ? 'max_prepared_statements = 100' : '';
        \file_put_contents("{$this->directory}/pgbouncer.ini", <<<INI
            [databases]
            * = host={$server['host']} port={$server['port']}
            [pgbouncer]
            listen_addr = 127.0.0.1
            listen_port = {$this->port}
            unix_socket_dir =
            auth_type = trust
            auth_file = {$this->directory}/users.txt
            pool_mode = $poolMode
            default_pool_size = $serverConnections
            max_client_conn = 200
            $prepared
            INI);
        // As root it refuses to run.
        $account = \posix_geteuid() === 0 ? ['-u', 'postgres'] : [];
        $log = ['file', "{$this->directory}/log", 'w'];
        $process = \proc_open([self::PROGRAM, ...$account, "{$this->directory}/pgbouncer.ini"], [['file', '/dev/null', 'r'], $log, $log], $pipes);
        \assert(\is_resource($process));
        $this->process = $process;
        $this->awaitStart();
    }

    /** Whether it takes statements prepared by name to whichever server's connection they are used on. */
    public static function keepsPreparedStatements(): bool
    {
        \preg_match('/\d+\.\d+/', (string) \shell_exec(self::PROGRAM . ' --version'), $version);

        return \version_compare($version[0] ?? '0', self::VERSION_WITH_PREPARED_STATEMENTS, '>=');
    }

    public function dsn(string $parameters = ''): string
    {
        return "postgres://{$this->server['user']}:{$this->server['pass']}@127.0.0.1:{$this->port}/weft?sslmode=disable$parameters";
    }

    public function stop(): void
    {
        \proc_terminate($this->process, \SIGKILL);
        \proc_close($this->process);
        \array_map(\unlink(...), \glob("{$this->directory}/*") ?: []);
        \rmdir($this->directory);
    }

    private function awaitStart(): void
    {
        $deadline = \microtime(true) + 60.0;
        while (($socket = @\fsockopen('127.0.0.1', $this->port)) === false) {
            $failed = \microtime(true) > $deadline || !\proc_get_status($this->process)['running'];
            if ($failed) {
                $log = (string) \file_get_contents("{$this->directory}/log");
                $this->stop();
                throw new \RuntimeException("PgBouncer does not start: $log");
            }
            \usleep(10_000);
        }
        \fclose($socket);
    }

    private static function freePort(): int
    {
        $listener = \stream_socket_server('tcp://127.0.0.1:0') ?: throw new \RuntimeException('there is no free port');
        $port = (int) \substr((string) \strrchr((string) \stream_socket_get_name($listener, false), ':'), 1);
        \fclose($listener);

        return $port;
    }
}
