<?php

declare(strict_types=1);

namespace Weft\Tests\Pool\Support;

use Weft\Pool\Hooks;
use Weft\Pool\PoolOptions;
use Weft\Sql\Database;
use Weft\Tests\Sql\Support\MysqlProduct;
use Weft\Tests\Sql\Support\Proxy;

/** A database server as these tests need it: what they ask of it in its own words, and its end. */
final class Server
{
    /** @var array<string, true> services that a test has killed and that have not started since */
    private static array $killed = [];

    private ?Database $admin = null;

    private function __construct(
        private readonly string $service,
        private readonly string $variable,
        public readonly string $sessionSql,
        public readonly string $sleepSql,
        private readonly string $endSql,
        private readonly string $aliveSql,
        public readonly string $countSql,
        private readonly string $pidFileSql,
    ) {
    }

    /** @return iterable<string, array{self}> for a data provider */
    public static function all(): iterable
    {
        yield 'PostgreSQL' => [new self(
            'postgres',
            'DATABASE_URL',
            'SELECT pg_backend_pid()',
            'SELECT pg_sleep(?)',
            'SELECT pg_terminate_backend(%d)',
            'SELECT count(*) FROM pg_stat_activity WHERE pid IN (%s)',
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'weft-pool-test'",
            "SELECT current_setting('data_directory') || '/postmaster.pid'",
        )];
        yield 'MariaDB or MySQL' => [new self(
            'mariadb',
            'WEFT_MYSQL_DSN',
            'SELECT CONNECTION_ID()',
            'SELECT SLEEP(?)',
            'KILL %d',
            'SELECT count(*) FROM information_schema.processlist WHERE id IN (%s)',
            "SELECT count(*) FROM information_schema.processlist WHERE user IN ('weft_ed25519', 'weft_tls')",
            'SELECT @@pid_file',
        )];
    }

    /** Sessions that are opened with it are those that {@see sessions()} counts. */
    public function dsn(): string
    {
        $dsn = \getenv($this->variable) ?: throw new \RuntimeException("{$this->variable} is not set: run `make services`");

        if ($this->service === 'postgres') {
            return "$dsn?application_name=weft-pool-test&connect_timeout=60";
        }
        $user = MysqlProduct::ofServer() === MysqlProduct::MariaDb ? 'weft_ed25519' : 'weft_tls';

        // MySQL that has just started asks for the password itself.
        return \str_replace('//weft:', "//{$user}:", $dsn) . '?connect_timeout=60&allow_unverified_server=on';
    }

    public function connect(PoolOptions $pool = new PoolOptions(), Hooks $hooks = new Hooks()): Database
    {
        return Database::connect($this->dsn(), $pool, $hooks);
    }

    /** @param callable(Database, Proxy): void $test */
    public function behindProxy(PoolOptions $pool, callable $test): void
    {
        [$host, $port] = [\parse_url($this->dsn(), \PHP_URL_HOST), \parse_url($this->dsn(), \PHP_URL_PORT)];
        $proxy = new Proxy($host, $port);
        $db = Database::connect(\str_replace("$host:$port", "127.0.0.1:{$proxy->port}", $this->dsn()), $pool);
        try {
            $test($db, $proxy);
        } finally {
            $proxy->stop();
            $db->close();
        }
    }

    public function session(Database $db): int
    {
        return $db->execute($this->sessionSql)->value();
    }

    /** Ends sessions as an administrator does; they are gone when it returns. */
    public function end(int ...$sessions): void
    {
        foreach ($sessions as $session) {
            $this->admin()->execute(\sprintf($this->endSql, $session))->rows();
        }
        $deadline = \microtime(true) + 60.0;
        while ($this->admin()->execute(\sprintf($this->aliveSql, \implode(', ', $sessions)))->value() > 0) {
            \microtime(true) < $deadline || throw new \RuntimeException('sessions of the server do not end');
        }
    }

    /** How many sessions of {@see dsn()} the server has. */
    public function sessions(): int
    {
        return $this->admin()->execute($this->countSql)->value();
    }

    /** SIGKILL; nobody says good-bye to anybody. */
    public function kill(): void
    {
        $pid = (int) \file_get_contents($this->admin()->execute($this->pidFileSql)->value());
        $this->admin = null;
        self::$killed[$this->service] = true;
        $pid > 1 && \posix_kill($pid, \SIGKILL) || throw new \RuntimeException("cannot kill {$this->service}, pid $pid");
    }

    /** Starts it beside the tasks: a process to wait for. */
    public function start(): Starting
    {
        return new Starting(self::script() . " start {$this->service}", function (): void {
            unset(self::$killed[$this->service]);
        });
    }

    /** Starts those that a failed test has killed and left so, also while they are being started; for `tearDown()`. */
    public static function startKilled(): void
    {
        foreach (\array_keys(self::$killed) as $service) {
            $output = [];
            \exec(self::script() . " start $service 2>&1 </dev/null", $output, $code);
            $code === 0 || throw new \RuntimeException("$service does not start again: " . \implode("\n", $output));
            unset(self::$killed[$service]);
        }
    }

    /** Null where the server is not one that a test may kill. */
    public static function script(): ?string
    {
        return \getenv('WEFT_SERVICES') ?: null;
    }

    public function close(): void
    {
        $this->admin?->close();
        $this->admin = null;
    }

    private function admin(): Database
    {
        return $this->admin ??= Database::connect((string) \getenv($this->variable), new PoolOptions(size: 2));
    }
}
