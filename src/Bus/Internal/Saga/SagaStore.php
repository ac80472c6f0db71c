<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Saga;

use Weft\Bus\Internal\Clock;
use Weft\Bus\Saga\SagaConflictException;
use Weft\Bus\Saga\SagaStatus;
use Weft\Bus\Saga\SagaValueTakenException;
use Weft\Sql\Connection;
use Weft\Sql\Database;
use Weft\Sql\UniqueViolationException;

/**
 * Sagas in `weft_sagas`, and the values that are associated with them in `weft_saga_associations`.
 *
 * A row is written with the version that was read in the condition, so that no change is made on a state that is over.
 *
 * @internal
 */
final class SagaStore
{
    public function __construct(public readonly Database $database) {}

    /** The saga with which a value is associated. One round trip. */
    public function byAssociation(Connection $connection, string $saga, string $name, string $value): ?SagaRow
    {
        $row = $connection->execute(
            'SELECT * FROM weft_sagas WHERE saga = ? AND id = (SELECT id FROM weft_saga_associations WHERE saga = ? AND name = ? AND value = ?)',
            [$saga, $saga, $name, $value],
        )->first();

        return $row === null ? null : SagaRow::of($row);
    }

    public function byId(Connection $connection, string $saga, string $id): ?SagaRow
    {
        $row = $connection->execute('SELECT * FROM weft_sagas WHERE saga = ? AND id = ?', [$saga, $id])->first();

        return $row === null ? null : SagaRow::of($row);
    }

    /**
     * Stores a row as its next version.
     *
     * @throws SagaConflictException when another message has stored it since
     */
    public function save(Connection $connection, SagaRow $row): void
    {
        try {
            $stored = $row->version === 0 ? $this->insert($connection, $row) : $this->update($connection, $row);
        } catch (UniqueViolationException $first) {
            throw new SagaConflictException("Saga {$row->saga} \"{$row->id}\" was started by another message at the same time", $first);
        }
        if (!$stored) {
            throw new SagaConflictException("Saga {$row->saga} \"{$row->id}\" was changed by another message since its version {$row->version} was read");
        }
        $row->version++;
    }

    /** @throws SagaValueTakenException when it is another open saga's */
    public function associate(Connection $connection, SagaRow $row, string $name, string $value): void
    {
        $holder = $connection->execute('SELECT id FROM weft_saga_associations WHERE saga = ? AND name = ? AND value = ?', [$row->saga, $name, $value])->value();
        if ($holder === $row->id) {
            return;
        }
        if ($holder === null) {
            $this->add($connection, $row, $name, $value);

            return;
        }
        if ($this->byId($connection, $row->saga, $holder)?->status()->isOpen()) {
            throw new SagaValueTakenException("{$name} \"{$value}\" is associated with saga {$row->saga} \"{$holder}\" and cannot be associated with \"{$row->id}\"");
        }
        $moved = $connection->execute('UPDATE weft_saga_associations SET id = ? WHERE saga = ? AND name = ? AND value = ? AND id = ?', [$row->id, $row->saga, $name, $value, $holder]);
        $moved->affected() === 1 || throw self::raced($row, $name, $value);
    }

    public function dissociate(Connection $connection, SagaRow $row, string $name, string $value): void
    {
        $connection->execute('DELETE FROM weft_saga_associations WHERE saga = ? AND name = ? AND value = ? AND id = ?', [$row->saga, $name, $value, $row->id]);
    }

    /** @return list<SagaRow> newest first */
    public function list(?string $saga, ?SagaStatus $status, int $limit): array
    {
        $now = (int) (Clock::now() * 1000);
        $conditions = ['1 = 1'];
        $parameters = [];
        if ($saga !== null) {
            $conditions[] = 'saga = ?';
            $parameters[] = $saga;
        }
        if ($status === SagaStatus::Expired) {
            $conditions[] = "(status = 'expired' OR (status IN ('active', 'reopened') AND expires_at <= ?))";
            $parameters[] = $now;
        } elseif ($status !== null) {
            $conditions[] = 'status = ?';
            $parameters[] = $status->value;
        }
        if ($status?->isOpen()) {
            $conditions[] = '(expires_at IS NULL OR expires_at > ?)';
            $parameters[] = $now;
        }
        $rows = $this->database->execute('SELECT * FROM weft_sagas WHERE ' . \implode(' AND ', $conditions) . " ORDER BY started_at DESC, id LIMIT {$limit}", $parameters);

        return \array_map(SagaRow::of(...), $rows->rows());
    }

    /**
     * Sagas whose time is over and that are stored as open.
     *
     * @param int $now milliseconds
     * @return list<SagaRow>
     */
    public function expired(string $saga, int $now, int $limit): array
    {
        $rows = $this->database->execute("SELECT * FROM weft_sagas WHERE saga = ? AND status IN ('active', 'reopened') AND expires_at <= ? LIMIT {$limit}", [$saga, $now]);

        return \array_map(SagaRow::of(...), $rows->rows());
    }

    /** @return int how many sagas were deleted that had ended or expired before a time, in milliseconds */
    public function prune(Connection $connection, int $before): int
    {
        $over = "(ended_at < ? OR (status IN ('active', 'reopened') AND expires_at < ?))";
        $connection->execute(
            "DELETE FROM weft_saga_associations WHERE EXISTS (SELECT 1 FROM weft_sagas s WHERE s.saga = weft_saga_associations.saga AND s.id = weft_saga_associations.id AND {$over})",
            [$before, $before],
        );

        return $connection->execute("DELETE FROM weft_sagas WHERE {$over}", [$before, $before])->affected();
    }

    private function insert(Connection $connection, SagaRow $row): bool
    {
        return $connection->execute(
            'INSERT INTO weft_sagas (saga, id, version, status, schema_version, state, started_at, expires_at, ended_at, reason) VALUES (?, ?, 1, ?, ?, ?, ?, ?, ?, ?)',
            [$row->saga, $row->id, $row->status->value, $row->schema, $row->state, $row->startedAt, $row->expiresAt, $row->endedAt, $row->reason],
        )->affected() === 1;
    }

    private function update(Connection $connection, SagaRow $row): bool
    {
        return $connection->execute(
            'UPDATE weft_sagas SET version = version + 1, status = ?, schema_version = ?, state = ?, expires_at = ?, ended_at = ?, reason = ? WHERE saga = ? AND id = ? AND version = ?',
            [$row->status->value, $row->schema, $row->state, $row->expiresAt, $row->endedAt, $row->reason, $row->saga, $row->id, $row->version],
        )->affected() === 1;
    }

    private function add(Connection $connection, SagaRow $row, string $name, string $value): void
    {
        try {
            $connection->execute('INSERT INTO weft_saga_associations (saga, name, value, id) VALUES (?, ?, ?, ?)', [$row->saga, $name, $value, $row->id])->affected();
        } catch (UniqueViolationException $first) {
            throw self::raced($row, $name, $value, $first);
        }
    }

    private static function raced(SagaRow $row, string $name, string $value, ?\Throwable $cause = null): SagaConflictException
    {
        return new SagaConflictException("{$name} \"{$value}\" was associated with another saga {$row->saga} at the same time as with \"{$row->id}\"", $cause);
    }
}
