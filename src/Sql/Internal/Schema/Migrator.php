<?php

declare(strict_types=1);

namespace Weft\Sql\Internal\Schema;

use Weft\Runtime\Mutex;
use Weft\Sql\Connection;
use Weft\Sql\Database;
use Weft\Sql\DeadlockException;
use Weft\Sql\Driver;
use Weft\Sql\InsufficientPrivilegeException;
use Weft\Sql\LockNotAvailableException;
use Weft\Sql\SchemaException;
use Weft\Sql\SqlException;
use Weft\Sql\Transaction;

use function Weft\delay;

/**
 * Creates and upgrades the tables of components, and records their versions in the table `weft_schema`.
 *
 * Any number of processes may do so at the same time: one works, the others wait for it. A step that is interrupted is undone, or done
 * again by the next process. Workers go on meanwhile, those of the version before too, see {@see Version}.
 *
 * @internal
 */
final class Migrator
{
    private const TABLE = 'weft_schema';

    /** Seconds a statement waits for transactions that use its table. Later statements queue behind it, so it gives up early and retries. */
    private const LOCK_TIMEOUT = 2;

    /** Seconds a process waits for another one that upgrades. */
    private const TURN_TIMEOUT = 3600;

    /** The name of the lock in MySQL, of at most 64 characters. The hash is one that all versions have: MySQL 9.6 and newer have no MD5(). */
    private const SERVER_LOCK = "CONCAT('weft_schema.', LEFT(SHA2(DATABASE(), 256), 32))";

    private const MAX_ATTEMPTS = 100;
    private const FIRST_PAUSE = 0.05;
    private const LONGEST_PAUSE = 3.0;

    private static bool $isPaused = false;

    /** @var \WeakMap<Database, Mutex>|null one task of a process at a time */
    private static ?\WeakMap $turns = null;

    private readonly Driver $driver;
    private ?string $version = null;

    public function __construct(private readonly Database $database)
    {
        $this->driver = $database->driver();
    }

    /** Lets {@see ensure()} do nothing from now on: `weft setup` looks at tables, or prepares them, without others doing so before. */
    public static function pause(): void
    {
        self::$isPaused = true;
    }

    /**
     * Makes the tables usable for this version of Weft: creates them, or upgrades those of an older version, unless the database was
     * connected with `createTables: false`.
     *
     * @throws SchemaException when they do not fit and may not or cannot be made to
     * @throws SqlException    when the database cannot be asked
     */
    public function ensure(Component $component): void
    {
        if (self::$isPaused) {
            return;
        }
        $catalog = $this->catalog();
        $state = $this->state($component, $catalog);
        if ($state->version >= $component->version && $this->missing($component, $catalog) === []) {
            return;
        }
        if (!$this->database->createsTables()) {
            throw $this->outdated($component, $catalog, $state);
        }
        $this->upgrade($component);
    }

    /**
     * Creates or upgrades the tables, and records their version.
     *
     * @throws SchemaException when the database's user may not, or the tables need a newer Weft
     */
    public function upgrade(Component $component): void
    {
        $this->alone($component, function () use ($component): void {
            $state = $this->state($component, $this->catalog());
            $steps = self::steps($component, $this->driver, $state->version);
            if ($steps !== []) {
                $this->write($component, fn(Connection $connection) => $this->begin($component, $connection));
            }
            foreach ($steps as $step) {
                $this->run($component, $step, $state->version);
            }
            $this->write($component, function (Connection $connection) use ($component): void {
                $catalog = new Catalog($connection, $this->driver);
                foreach ($this->completion($component, $catalog, $this->state($component, $catalog, $connection)) as $statement) {
                    $connection->execute($statement)->affected();
                }
            });
        });
    }

    /**
     * Removes what only workers of the version before need. Does nothing to tables of another version than the current one.
     *
     * @throws SchemaException when the database's user may not
     */
    public function contract(Component $component): void
    {
        if ($this->state($component, $this->catalog())->version !== $component->version) {
            return;
        }
        $this->alone($component, function () use ($component): void {
            $this->write($component, function (Connection $connection) use ($component): void {
                foreach (self::contracted($component, $this->driver) as $statement) {
                    $connection->execute($statement)->affected();
                }
            });
            foreach ($component->latest()?->contract($this->driver) ?? [] as $step) {
                $this->run($component, $step, $component->version);
            }
        });
    }

    /** Whether the database has tables of the component. */
    public function isPresent(Component $component): bool
    {
        return $this->state($component, $this->catalog())->version > 0;
    }

    private function catalog(): Catalog
    {
        return new Catalog($this->database, $this->driver);
    }

    /**
     * The version of the tables, recorded or detected.
     *
     * @throws SchemaException when they need a newer Weft
     */
    private function state(Component $component, Catalog $catalog, ?Connection $connection = null): State
    {
        $row = $catalog->has(self::TABLE)
            ? ($connection ?? $this->database)->execute('SELECT version, minimum FROM ' . self::TABLE . ' WHERE component = ?', [$component->name])->first()
            : null;
        if ($row === null) {
            $version = $component->detect($catalog);

            return new State($version, $version);
        }
        /** @var array{version: int, minimum: int} $row */
        if ($row['minimum'] > $component->version) {
            throw new SchemaException("The tables of \"{$component->name}\" in database \"{$this->database->name()}\" have version {$row['version']}, which workers from version"
                . " {$row['minimum']} on can use. This worker knows version {$component->version}: update Weft");
        }

        return new State($row['version'], $row['minimum']);
    }

    /**
     * Describes what {@see upgrade()} would do.
     *
     * @return list<string>
     */
    public function pending(Component $component): array
    {
        $catalog = $this->catalog();
        $summaries = \array_map(static fn(Step $step): string => $step->summary, $this->needed($component, $catalog));
        foreach ($this->missing($component, $catalog) as $table) {
            $isCovered = \array_filter($summaries, static fn(string $summary): bool => \str_ends_with($summary, " {$table}")) !== [];
            $summaries = $isCovered ? $summaries : [...$summaries, "create table {$table}"];
        }

        return $summaries;
    }

    /** @return list<Step> what {@see contract()} would do */
    public function leftovers(Component $component): array
    {
        $catalog = $this->catalog();
        $steps = $this->state($component, $catalog)->version === $component->version ? $component->latest()?->contract($this->driver) ?? [] : [];

        return \array_values(\array_filter($steps, static fn(Step $step): bool => $step->isNeeded($catalog)));
    }

    /**
     * How the tables differ from those this version of Weft needs.
     *
     * @return list<string>
     */
    public function differences(Component $component): array
    {
        $catalog = $this->catalog();
        $state = $this->state($component, $catalog);
        if ($state->version < $component->version) {
            $found = $state->version === 0 ? 'no tables' : "version {$state->version}";

            return ["found {$found}, version {$component->version} is needed", ...($state->version === 0 ? [] : Comparison::of($component, $catalog, false))];
        }

        return Comparison::of($component, $catalog, $this->leftovers($component) === []);
    }

    /**
     * The SQL of {@see upgrade()}.
     *
     * @return list<string>
     */
    public function sql(Component $component): array
    {
        $catalog = $this->catalog();
        $state = $this->state($component, $catalog);
        $statements = \array_merge(...\array_map(static fn(Step $step): array => $step->statements, $this->needed($component, $catalog)));
        $isComplete = $state->version >= $component->version && $this->missing($component, $catalog) === [];

        return $isComplete ? [] : [...$statements, ...$this->completion($component, $catalog, $state)];
    }

    /**
     * The SQL that upgrades a database without a connection to it.
     *
     * @param int $from the version of its tables; 0 where it has none
     * @return list<string>
     */
    public static function script(Component $component, Driver $driver, int $from): array
    {
        $statements = \array_merge(...\array_map(static fn(Step $step): array => $step->statements, self::steps($component, $driver, $from)));
        if ($from === 0) {
            $creations = \array_map(static fn(Table $table): array => $table->create($driver), $component->tables($driver));
            $statements = \array_merge($component->before($driver), ...$creations);
        }

        return [...$statements, self::recordTable($driver), self::record($component, $driver, self::upgraded($component, new State($from, $from)))];
    }

    /**
     * The SQL of {@see contract()}.
     *
     * @param list<Step> $steps
     * @return list<string>
     */
    public static function contractSql(Component $component, Driver $driver, array $steps): array
    {
        return $steps === [] ? [] : \array_merge(self::contracted($component, $driver), ...\array_map(static fn(Step $step): array => $step->statements, $steps));
    }

    /** @return list<string> refuses workers of the version before */
    private static function contracted(Component $component, Driver $driver): array
    {
        return [self::recordTable($driver), self::record($component, $driver, new State($component->version, $component->version))];
    }

    /** @return list<Step> what {@see upgrade()} does to the tables of an older version, before it creates the missing ones */
    private static function steps(Component $component, Driver $driver, int $from): array
    {
        $steps = [];
        foreach ($from === 0 ? [] : $component->versions as $version) {
            $steps = [
                ...$steps,
                ...($version->number > $from ? $version->expand($driver) : []),
                ...($version->number >= $from && $version->number < $component->version ? $version->contract($driver) : []),
            ];
        }

        return $steps;
    }

    /** @return list<Step> */
    private function needed(Component $component, Catalog $catalog): array
    {
        $steps = self::steps($component, $this->driver, $this->state($component, $catalog)->version);

        return \array_values(\array_filter($steps, static fn(Step $step): bool => $step->isNeeded($catalog)));
    }

    /** @return list<string> names of tables that the database has not */
    private function missing(Component $component, Catalog $catalog): array
    {
        $names = \array_map(static fn(Table $table): string => $table->name, $component->tables($this->driver));

        return \array_values(\array_filter($names, static fn(string $name): bool => !$catalog->has($name)));
    }

    /**
     * The last part of {@see upgrade()}: creates the missing tables and records the version.
     *
     * @return list<string>
     */
    private function completion(Component $component, Catalog $catalog, State $state): array
    {
        $missing = $this->missing($component, $catalog);
        $statements = $missing === [] ? [] : $component->before($this->driver);
        foreach ($component->tables($this->driver) as $table) {
            $statements = [...$statements, ...(\in_array($table->name, $missing, true) ? $table->create($this->driver) : [])];
        }

        return [...$statements, self::recordTable($this->driver), ...($state->version > $component->version ? [] : [self::record($component, $this->driver, self::upgraded($component, $state))])];
    }

    /** An upgrade leaves tables that workers of the version before can use. */
    private static function upgraded(Component $component, State $from): State
    {
        return new State($component->version, $from->version === 0 ? $component->version : \max($from->minimum, $component->version - 1));
    }

    /** The table of versions itself; it has one version and no upgrades. */
    private static function recordTable(Driver $driver): string
    {
        return Table::named(self::TABLE)
            ->column('component', Type::id(50), suffix: 'PRIMARY KEY')
            ->column('version', Type::integer())
            ->column('minimum', Type::integer())
            ->create($driver)[0];
    }

    private static function record(Component $component, Driver $driver, State $state): string
    {
        $insert = 'INTO ' . self::TABLE . " (component, version, minimum) VALUES ('{$component->name}', {$state->version}, {$state->minimum})";

        return $driver === Driver::Mysql
            ? "REPLACE {$insert}"
            : "INSERT {$insert} ON CONFLICT (component) DO UPDATE SET version = excluded.version, minimum = excluded.minimum";
    }

    /** Records the version that the steps start from, which cannot be detected after the first of them. */
    private function begin(Component $component, Connection $connection): void
    {
        $catalog = new Catalog($connection, $this->driver);
        $state = $this->state($component, $catalog, $connection);
        if ($state->version < $component->version) {
            $connection->execute(self::recordTable($this->driver))->affected();
            $connection->execute(self::record($component, $this->driver, $state))->affected();
        }
    }

    /** Runs a step, unless another process has done it. */
    private function run(Component $component, Step $step, int $from): void
    {
        $this->write($component, function (Connection $connection) use ($component, $step, $from): void {
            $catalog = new Catalog($connection, $this->driver);
            if ($this->state($component, $catalog, $connection)->version !== $from || !$step->isNeeded($catalog)) {
                return;
            }
            foreach ($step->statements as $statement) {
                $connection->execute($this->prefix($step) . $statement)->affected();
            }
        }, $step->data);
    }

    /** In MariaDB each statement says how long it waits; MySQL waits for its `lock_wait_timeout`. */
    private function prefix(Step $step): string
    {
        if ($this->driver !== Driver::Mysql || $step->data) {
            return '';
        }
        $this->version ??= (string) $this->database->execute('SELECT VERSION()')->value();

        return \str_contains($this->version, 'MariaDB') ? 'SET STATEMENT lock_wait_timeout = ' . self::LOCK_TIMEOUT . ' FOR ' : '';
    }

    /**
     * Runs `$work` in a transaction, alone among all processes; in MySQL, which would end it, without one. Tries again when a worker holds a
     * lock for long.
     *
     * @param \Closure(Connection): void $work
     * @param bool                       $data whether `$work` changes rows only
     */
    private function write(Component $component, \Closure $work, bool $data = false): void
    {
        $pause = self::FIRST_PAUSE;
        for ($attempt = 1;; $attempt++) {
            try {
                if ($this->driver === Driver::Mysql && !$data) {
                    $work($this->database);
                } else {
                    $this->database->transaction(function (Transaction $transaction) use ($work): void {
                        foreach ($this->preamble() as $statement) {
                            $transaction->execute($statement)->affected();
                        }
                        $work($transaction);
                    });
                }

                return;
            } catch (LockNotAvailableException | DeadlockException $busy) {
                if ($attempt === self::MAX_ATTEMPTS) {
                    throw new SchemaException("The tables of \"{$component->name}\" in database \"{$this->database->name()}\" are locked by other transactions, tried {$attempt} times: {$busy->getMessage()}", $busy->sqlState, $busy->statement, previous: $busy);
                }
                delay($pause);
                $pause = \min(2 * $pause, self::LONGEST_PAUSE);
            }
        }
    }

    /** @return list<string> */
    private function preamble(): array
    {
        return match ($this->driver) {
            // The lock that workers of 0.1 take too.
            Driver::Postgres => ["SELECT pg_advisory_xact_lock(hashtext('weft tables'))", "SET LOCAL lock_timeout = '" . self::LOCK_TIMEOUT . "s'"],
            // Rows that come while others are copied are not locked out.
            Driver::Mysql => ['SET TRANSACTION ISOLATION LEVEL READ COMMITTED'],
            // A transaction that writes is alone.
            Driver::Sqlite => [],
        };
    }

    /**
     * In MySQL a lock of the server replaces the one that the other databases take in each transaction.
     *
     * @param \Closure(): void $work
     * @throws SchemaException
     */
    private function alone(Component $component, \Closure $work): void
    {
        try {
            $this->driver === Driver::Mysql ? $this->withServerLock($work) : $work();
        } catch (SchemaException $explained) {
            throw $explained;
        } catch (SqlException $exception) {
            if ($exception instanceof InsufficientPrivilegeException || $this->driver === Driver::Sqlite && $exception->sqlState === '25006') {
                throw $this->notPermitted($component, $exception);
            }
            throw $exception;
        }
    }

    /**
     * The lock has a connection of its own: statements that change tables would end its transaction. So only one task may wait for it, and
     * the pool needs a second connection.
     *
     * @param \Closure(): void $work
     */
    private function withServerLock(\Closure $work): void
    {
        /** @var \WeakMap<Database, Mutex> $turns */
        $turns = self::$turns ??= new \WeakMap();
        $turn = $turns[$this->database] ?? new Mutex();
        $turns[$this->database] = $turn;
        $turn->synchronized(function () use ($work): void {
            /** @var positive-int $size */
            $size = $this->database->stats()['size'];
            $size > 1 || $this->database->resize(2);
            try {
                $this->holdingServerLock($work);
            } finally {
                $size > 1 || $this->database->resize($size);
            }
        });
    }

    /** @param \Closure(): void $work */
    private function holdingServerLock(\Closure $work): void
    {
        $lock = $this->database->begin();
        try {
            if ($lock->execute('SELECT GET_LOCK(' . self::SERVER_LOCK . ', ?)', [self::TURN_TIMEOUT])->value() !== 1) {
                throw new SchemaException("Another process has upgraded the tables in database \"{$this->database->name()}\" for more than " . self::TURN_TIMEOUT . ' s');
            }
            $work();
            $lock->execute('SELECT RELEASE_LOCK(' . self::SERVER_LOCK . ')')->value();
        } finally {
            $lock->rollback();
        }
    }

    private function outdated(Component $component, Catalog $catalog, State $state): SchemaException
    {
        $missing = \implode(', ', $this->missing($component, $catalog));

        return new SchemaException("The tables of \"{$component->name}\" in database \"{$this->database->name()}\" do not fit this version of Weft: found "
            . ($state->version === 0 ? 'no version' : "version {$state->version}") . ", version {$component->version} is needed"
            . ($missing === '' ? '' : "; {$missing} is missing") . '. Run `weft setup` or apply the SQL that `weft setup --sql` prints; this database was connected with createTables: false');
    }

    private function notPermitted(Component $component, SqlException $cause): SchemaException
    {
        return new SchemaException("The tables of \"{$component->name}\" cannot be created or upgraded to version {$component->version} in database \"{$this->database->name()}\": {$cause->getMessage()}."
            . ' Run `weft setup` as a user who may create tables, or apply the SQL that `weft setup --sql` prints', $cause->sqlState, $cause->statement, previous: $cause);
    }
}
