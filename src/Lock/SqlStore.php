<?php

declare(strict_types=1);

namespace Weft\Lock;

use Weft\Lock\Internal\Tables;
use Weft\Sql\Database;
use Weft\Sql\Driver;
use Weft\Sql\Internal\Clock;
use Weft\Sql\Internal\Schema\Migrator;

/**
 * Locks in the table `weft_locks`, which is created if it is missing. Locks expire by the database's clock, so the clocks of
 * the machines do not matter. Rows are never deleted, because fencing tokens must not start again.
 */
final class SqlStore implements LockStore
{
    private readonly string $now;
    private bool $isReady = false;

    public function __construct(private readonly Database $database)
    {
        $this->now = Clock::seconds($database->driver());
    }

    public function acquire(string $name, string $owner, float $seconds): ?int
    {
        $this->prepare();
        $insert = "INSERT INTO weft_locks (name, owner, fence, expires_at) VALUES (?, ?, 1, {$this->now} + ?)";
        if ($this->database->driver() !== Driver::Mysql) {
            return $this->database->execute(
                "{$insert} ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, fence = weft_locks.fence + 1, expires_at = excluded.expires_at
                WHERE weft_locks.expires_at <= {$this->now} RETURNING fence",
                [$name, $owner, $seconds],
            )->value();
        }
        // Separate transactions: in one transaction, concurrent owners would deadlock on each other's gap locks.
        $taken = $this->database->execute(
            "UPDATE weft_locks SET owner = ?, fence = fence + 1, expires_at = {$this->now} + ? WHERE name = ? AND expires_at <= {$this->now}",
            [$owner, $seconds, $name],
        );
        if ($taken->affected() === 1) {
            return $this->database->execute('SELECT fence FROM weft_locks WHERE name = ? AND owner = ?', [$name, $owner])->value();
        }

        return $this->database->execute(\str_replace('INSERT INTO', 'INSERT IGNORE INTO', $insert), [$name, $owner, $seconds])->affected() === 1 ? 1 : null;
    }

    public function renew(string $name, string $owner, float $seconds): bool
    {
        $this->prepare();

        return $this->database->execute(
            "UPDATE weft_locks SET expires_at = {$this->now} + ? WHERE name = ? AND owner = ? AND expires_at > {$this->now}",
            [$seconds, $name, $owner],
        )->affected() === 1;
    }

    public function release(string $name, string $owner): bool
    {
        $this->prepare();

        return $this->database->execute(
            "UPDATE weft_locks SET owner = '', expires_at = 0 WHERE name = ? AND owner = ? AND expires_at > {$this->now}",
            [$name, $owner],
        )->affected() === 1;
    }

    /**
     * @internal
     *
     * @return string|null who holds the lock, as it was told; null when it is free
     */
    public function owner(string $name): ?string
    {
        $this->prepare();

        return $this->database->execute("SELECT owner FROM weft_locks WHERE name = ? AND expires_at > {$this->now}", [$name])->value();
    }

    /** @internal creates the table if it is missing */
    public function prepare(): void
    {
        if ($this->isReady) {
            return;
        }
        (new Migrator($this->database))->ensure(Tables::component());
        $this->isReady = true;
    }
}
