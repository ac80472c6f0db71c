<?php

declare(strict_types=1);

namespace Weft\Http\Sessions;

use Weft\Http\Internal\SessionTables;
use Weft\Http\SessionStore;
use Weft\Sql\Database;
use Weft\Sql\Driver;
use Weft\Sql\Internal\Clock;
use Weft\Sql\Internal\Schema\Migrator;

/** Sessions in the table `weft_sessions`, which is created if it is missing. They expire by the database's clock. */
final class SqlStore implements SessionStore
{
    private readonly string $now;
    private bool $isReady = false;

    public function __construct(private readonly Database $database)
    {
        $this->now = Clock::seconds($database->driver());
    }

    public function read(string $id): ?StoredSession
    {
        $this->prepare();
        /** @var array{data: string, version: int}|null $row */
        $row = $this->database->execute("SELECT data, version FROM weft_sessions WHERE id = ? AND expires_at > {$this->now}", [$id])->first();

        return $row === null ? null : new StoredSession($row['data'], $row['version']);
    }

    public function write(string $id, string $data, int $version, float $seconds): bool
    {
        $this->prepare();
        if ($version > 0) {
            $update = "UPDATE weft_sessions SET data = ?, version = version + 1, expires_at = {$this->now} + ? WHERE id = ? AND version = ?";

            return $this->database->execute($update, [$data, $seconds, $id, $version])->affected() === 1;
        }
        $ignore = $this->database->driver() === Driver::Mysql ? ['INSERT IGNORE INTO', ''] : ['INSERT INTO', ' ON CONFLICT (id) DO NOTHING'];
        $insert = "{$ignore[0]} weft_sessions (id, version, data, expires_at) VALUES (?, 1, ?, {$this->now} + ?){$ignore[1]}";

        return $this->database->execute($insert, [$id, $data, $seconds])->affected() === 1;
    }

    public function delete(string $id): void
    {
        $this->prepare();
        $this->database->execute('DELETE FROM weft_sessions WHERE id = ?', [$id]);
    }

    public function prune(): void
    {
        $this->prepare();
        $this->database->execute("DELETE FROM weft_sessions WHERE expires_at <= {$this->now}");
    }

    private function prepare(): void
    {
        if (!$this->isReady) {
            (new Migrator($this->database))->ensure(SessionTables::component());
            $this->isReady = true;
        }
    }
}
