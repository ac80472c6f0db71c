<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Internal;

use Weft\Bridge\Internal\SharedDatabases;
use Weft\Bus\Bus;
use Weft\Bus\BusOptions;
use Weft\Bus\InboxOptions;
use Weft\Bus\Internal\Dsn;
use Weft\Bus\Transport;
use Weft\Sql\Database;

/**
 * Makes buses on the connection to a broker, which the applications of a process share.
 *
 * @internal
 */
final class Buses
{
    /** @var array<string, array{Transport, Database|null}> */
    private static array $open = [];

    /** @var array<string, true> queues that this process has declared */
    private static array $declared = [];

    public function __construct(#[\SensitiveParameter] private readonly string $dsn)
    {
    }

    /** @param object ...$handlers */
    public function bus(object ...$handlers): Bus
    {
        [$transport, $database] = $this->connection();

        // The handler of jobs has a limit of its own: Laravel's failed jobs are not dead letters.
        return Bus::connect($transport, $database, new BusOptions(inbox: new InboxOptions(maxCrashes: \PHP_INT_MAX)))->handlers(...$handlers);
    }

    public function transport(): Transport
    {
        return $this->connection()[0];
    }

    /** @param \Closure(): void $declare */
    public function once(string $queue, \Closure $declare): void
    {
        $name = "$queue at $this->dsn";
        if (!isset(self::$declared[$name])) {
            $declare();
            self::$declared[$name] = true;
        }
    }

    /** @return array{Transport, Database|null} */
    private function connection(): array
    {
        if (!isset(self::$open[$this->dsn])) {
            // Delayed jobs are stored in the database of the messages; RabbitMQ has queues for them.
            $database = \preg_match('/^(?:postgres|postgresql|pgsql|sqlite):/', $this->dsn) === 1 ? SharedDatabases::of(\serialize([self::class, $this->dsn]), fn(): Database => Database::connect($this->dsn)) : null;
            $transport = Dsn::connect($this->dsn, $database);
            // Connecting waits: another task may have been faster.
            self::$open[$this->dsn] ??= [$transport, $database];
        }

        return self::$open[$this->dsn];
    }
}
