<?php

declare(strict_types=1);

namespace Weft\Bench\Rinha;

use Weft\Bench\BenchmarkException;

/** A new database cluster for one run, on a port of its own, with the settings of examples/rinha/postgresql.conf. */
final class Postgres
{
    private const START_SECONDS = 20.0;

    private readonly string $bin;
    private readonly string $data;

    /** @param string $settings a file in the syntax of postgresql.conf */
    public function __construct(private readonly int $port, string $settings)
    {
        $this->bin = self::newest();
        // PostgreSQL does not run as root, and its own account may not be able to enter a directory below a home.
        $this->data = '/var/tmp/weft-rinha-' . getmypid();
        mkdir($this->data, 0o700);
        posix_geteuid() === 0 && chown($this->data, 'postgres');
        $this->run(["{$this->bin}/initdb", "--pgdata={$this->data}", '--username=rinha', '--auth=trust', '--encoding=UTF8', '--locale=C.UTF-8', '--no-sync']);
        $own = "listen_addresses = '127.0.0.1'\nport = {$this->port}\nunix_socket_directories = ''\n";
        file_put_contents("{$this->data}/postgresql.auto.conf", $own . file_get_contents($settings));
    }

    /** @return list<string> runs the server in the foreground */
    public function command(): array
    {
        return [...self::account(), "{$this->bin}/postgres", '-D', $this->data];
    }

    /** Waits until it answers: it accepts connections before it does. */
    public function await(): void
    {
        $deadline = microtime(true) + self::START_SECONDS;
        while (true) {
            try {
                $this->connection();

                return;
            } catch (\PDOException $failure) {
                microtime(true) < $deadline || throw new BenchmarkException("PostgreSQL does not answer: {$failure->getMessage()}");
                usleep(20_000);
            }
        }
    }

    public function url(): string
    {
        return "postgres://rinha:rinha@127.0.0.1:{$this->port}/postgres?sslmode=disable";
    }

    public function people(): int
    {
        return (int) $this->connection()->query('SELECT count(*) FROM pessoas')->fetchColumn();
    }

    /** Transactions that stored the people: each row carries the number of its own. */
    public function transactions(): int
    {
        return (int) $this->connection()->query('SELECT count(DISTINCT xmin::text) FROM pessoas')->fetchColumn();
    }

    /** @return array<string, string> the settings that durability rests on, and the version */
    public function settings(): array
    {
        $settings = [];
        foreach (['server_version', 'fsync', 'synchronous_commit', 'full_page_writes'] as $name) {
            $settings[$name] = strtok($this->connection()->query("SHOW $name")->fetchColumn(), ' ');
        }

        return $settings;
    }

    /** The server must have ended. */
    public function remove(): void
    {
        exec('rm -rf ' . escapeshellarg($this->data));
    }

    private function connection(): \PDO
    {
        return new \PDO("pgsql:host=127.0.0.1;port={$this->port};dbname=postgres", 'rinha', 'rinha');
    }

    /** @param list<string> $command */
    private function run(array $command): void
    {
        $line = implode(' ', array_map(escapeshellarg(...), [...self::account(), ...$command]));
        exec("$line 2>&1", $output, $code);
        $code === 0 || throw new BenchmarkException("{$command[0]} exited with code $code: " . implode("\n", $output));
    }

    /** @return list<string> */
    private static function account(): array
    {
        return posix_geteuid() === 0
            ? ['setpriv', '--reuid=postgres', '--regid=postgres', '--init-groups', 'env', '--chdir=/', 'LANG=C.UTF-8']
            : ['env', 'LANG=C.UTF-8'];
    }

    private static function newest(): string
    {
        $directories = glob('/usr/lib/postgresql/*/bin/postgres') ?: throw new BenchmarkException('PostgreSQL is not installed: run scripts/setup rinha');
        natsort($directories);

        return dirname(end($directories));
    }
}
