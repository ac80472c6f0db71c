<?php

declare(strict_types=1);

namespace Weft\Bus\Claims;

use Weft\Bus\ClaimStore;
use Weft\Bus\Internal\ClaimCheckTables;
use Weft\Bus\Internal\Persistence\Dialect;
use Weft\Sql\Bytes;
use Weft\Sql\Connection;
use Weft\Sql\Database;
use Weft\Sql\Internal\Schema\Migrator;

/** Stores bodies in the table `weft_claim_checks`, which is created on first use. */
final class DatabaseStore implements ClaimStore
{
    private const ROWS_PER_DELETE = 500;

    private readonly Dialect $dialect;
    private bool $isReady = false;

    public function __construct(public readonly Database $database)
    {
        $this->dialect = new Dialect($database);
    }

    public function put(string $id, string $body): void
    {
        $this->prepare();
        $this->putIn($this->database, $id, $body);
    }

    /** @internal after {@see prepare()}; a body that is stored in a transaction is there after its commit */
    public function putIn(Connection $connection, string $id, string $body): void
    {
        $connection->execute("INSERT INTO weft_claim_checks (id, kept_at, body) VALUES (?, {$this->dialect->seconds()}, ?)", [$id, new Bytes($body)]);
    }

    public function get(string $id): ?string
    {
        $this->prepare();

        return $this->database->execute('SELECT body FROM weft_claim_checks WHERE id = ?', [$id])->value();
    }

    public function prune(float $seconds): int
    {
        $this->prepare();
        $before = $this->dialect->unixTimeBefore($seconds);
        $deleted = 0;
        do {
            $rows = $this->database->execute($this->dialect->deleteBelow('weft_claim_checks', 'id', 'kept_at', self::ROWS_PER_DELETE), [$before])->affected();
            $deleted += $rows;
        } while ($rows === self::ROWS_PER_DELETE);

        return $deleted;
    }

    /** @internal creates or upgrades the table, once */
    public function prepare(): void
    {
        if (!$this->isReady) {
            (new Migrator($this->database))->ensure(ClaimCheckTables::component());
            $this->isReady = true;
        }
    }
}
