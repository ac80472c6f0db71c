<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Persistence;

use Weft\Sql\Driver;
use Weft\Sql\Internal\Schema\Catalog;
use Weft\Sql\Internal\Schema\Column;
use Weft\Sql\Internal\Schema\Component;
use Weft\Sql\Internal\Schema\Rename;
use Weft\Sql\Internal\Schema\Step;
use Weft\Sql\Internal\Schema\Table;
use Weft\Sql\Internal\Schema\Type;
use Weft\Sql\Internal\Schema\Version;

/**
 * The tables of the bus: inbox, outbox, redeliveries, delayed messages, schedules, blocked keys, rate limits, paused queues and
 * the broker.
 *
 * @internal
 */
final class Tables
{
    public static function component(): Component
    {
        return new Component('bus', 'weft_inbox', self::tables(...), [
            // Until 0.1: weft_attempts, weft_keys, weft_waiting, weft_rates, and weft_inbox.body; no weft_schedules.type and weft_schedules.fired.
            new Version(2, '0.2', 'weft_redeliveries', self::expandTo2(...), self::contractTo2(...)),
        ]);
    }

    /** @return list<Table> */
    private static function tables(Driver $driver): array
    {
        return [
            // Inbox rows are inserted in order of time: a block range index finds the old ones and costs an insert nothing.
            Table::named('weft_inbox')
                ->column('message_id', Type::id(64))
                ->column('consumer', Type::bigint())
                ->column('body_hash', Type::bigint())
                ->column('handled_at', Type::bigint())
                ->primaryKey('message_id', 'consumer')
                ->index(['handled_at'], method: 'brin'),
            self::outbox(),
            self::redeliveries(),
            Table::named('weft_delayed')
                ->column('id', Type::name(96), suffix: 'PRIMARY KEY')
                ->column('due', Type::bigint())
                ->column('queue', Type::name(250))
                ->column('type', Type::name(200))
                ->column('must_route', Type::smallint())
                ->column('headers', Type::text())
                ->column('body', Type::bytes())
                ->index(['due']),
            self::schedules(),
            self::blockedKeys(),
            self::blockedMessages($driver),
            self::rateLimits(),
            self::pausedQueues(),
            self::broker(),
        ];
    }

    private static function outbox(): Table
    {
        return Table::named('weft_outbox')
            ->column('id', Type::id(64), suffix: 'PRIMARY KEY')
            ->column('type', Type::name(200))
            ->column('must_route', Type::smallint())
            ->column('headers', Type::text())
            ->column('body', Type::bytes())
            // Of ordered messages, see OutboxRow::cause(). Few are, so those without one are in no index where the database allows it.
            ->column('cause', Type::id(64), nullable: true)
            ->index(['cause', 'id'], where: 'cause IS NOT NULL');
    }

    private static function redeliveries(): Table
    {
        return Table::named('weft_redeliveries')
            ->column('message_id', Type::name(64))
            ->column('consumer', Type::bigint())
            ->column('redeliveries', Type::integer())
            ->column('updated_at', Type::bigint())
            ->primaryKey('message_id', 'consumer')
            ->index(['updated_at']);
    }

    private static function schedules(): Table
    {
        return Table::named('weft_schedules')
            ->column('name', Type::name(200))
            // Of the command. Workers of 0.1 name none.
            ->column('type', Type::name(200), suffix: "DEFAULT ''")
            ->column('rule', Type::name(200))
            ->column('due', Type::bigint())
            // The latest times that have fired, in seconds since 1970. Workers of 0.1 store none.
            ->column('fired', Type::name(800), suffix: "DEFAULT ''")
            ->primaryKey('name', 'type');
    }

    private static function blockedKeys(): Table
    {
        return Table::named('weft_blocked_keys')
            ->column('queue', Type::name(250))
            ->column('order_key', Type::name(200))
            ->column('message_id', Type::name(64))
            ->column('blocked_at', Type::bigint())
            ->column('released', Type::smallint())
            ->primaryKey('queue', 'order_key');
    }

    private static function blockedMessages(Driver $driver): Table
    {
        return Table::named('weft_blocked_messages')
            ->serial($driver, 'position', always: true)
            ->column('queue', Type::name(250))
            ->column('order_key', Type::name(200))
            ->column('message_id', Type::name(64))
            ->column('type', Type::name(200))
            ->column('headers', Type::text())
            ->column('body', Type::bytes())
            ->unique(['queue', 'message_id'])
            ->index(['queue', 'order_key', 'position']);
    }

    private static function rateLimits(): Table
    {
        return Table::named('weft_rate_limits')
            ->column('name', Type::name(255), suffix: 'PRIMARY KEY')
            ->column('reserved_us', Type::bigint())
            ->column('clock_us', Type::bigint());
    }

    private static function pausedQueues(): Table
    {
        return Table::named('weft_paused_queues')
            ->column('queue', Type::name(250), suffix: 'PRIMARY KEY')
            ->column('paused_at', Type::bigint());
    }

    /** The broker for which outbox and delayed messages are, in one row, see {@see BrokerLease}. */
    private static function broker(): Table
    {
        return Table::named('weft_broker')
            ->column('id', Type::smallint(), suffix: 'PRIMARY KEY')
            ->column('name', Type::name(255))
            ->column('used_at', Type::bigint());
    }

    /** @return list<Rename> */
    private static function renamesTo2(Driver $driver): array
    {
        return [
            new Rename('weft_attempts', self::redeliveries(), ['attempts' => 'redeliveries', 'noted_at' => 'updated_at']),
            new Rename('weft_keys', self::blockedKeys(), ['head' => 'message_id']),
            new Rename('weft_waiting', self::blockedMessages($driver), ['place' => 'position']),
        ];
    }

    /** @return list<Step> */
    private static function expandTo2(Driver $driver): array
    {
        $renames = \array_merge(...\array_map(static fn(Rename $rename): array => $rename->expand($driver), self::renamesTo2($driver)));

        return [...self::inboxTo2($driver), ...$renames, self::outboxTo2($driver), self::schedulesTo2($driver), Step::create(self::rateLimits(), $driver), Step::create(self::pausedQueues(), $driver), Step::create(self::broker(), $driver)];
    }

    /** @return list<Step> */
    private static function contractTo2(Driver $driver): array
    {
        $renames = \array_merge(...\array_map(static fn(Rename $rename): array => $rename->contract($driver), self::renamesTo2($driver)));

        return [
            ...self::inboxFrom1($driver),
            ...$renames,
            // Rate limits were in a form that this version cannot read. They last for seconds, so they are not copied.
            new Step('drop table weft_rates', ['DROP TABLE IF EXISTS weft_rates'], static fn(Catalog $catalog): bool => $catalog->isTable('weft_rates')),
        ];
    }

    /**
     * Renames the column `body` of the inbox, which is the largest table, to `body_hash`, so that both names can be read and written.
     *
     * @return list<Step>
     */
    private static function inboxTo2(Driver $driver): array
    {
        $summary = 'rename column weft_inbox.body to body_hash';
        $needed = static fn(Catalog $catalog): bool => $catalog->has('weft_inbox') && !$catalog->hasColumn('weft_inbox', 'body_hash');

        return match ($driver) {
            Driver::Postgres => [new Step($summary, [
                'ALTER TABLE weft_inbox RENAME TO weft_inbox_2',
                'ALTER TABLE weft_inbox_2 RENAME COLUMN body TO body_hash',
                ...Rename::view('weft_inbox', 'weft_inbox_2', 'message_id, consumer, body_hash, handled_at, body_hash AS body'),
            ], $needed)],
            Driver::Mysql => [
                new Step('add column weft_inbox.body_hash', ['ALTER TABLE weft_inbox ADD COLUMN body_hash BIGINT NULL AFTER consumer, MODIFY COLUMN body BIGINT NULL'], $needed),
                new Step('fill weft_inbox.body_hash and weft_inbox.body by a trigger', [
                    'DROP TRIGGER IF EXISTS weft_inbox_body',
                    'CREATE TRIGGER weft_inbox_body BEFORE INSERT ON weft_inbox FOR EACH ROW '
                        . 'SET NEW.body_hash = COALESCE(NEW.body_hash, NEW.body), NEW.body = COALESCE(NEW.body, NEW.body_hash)',
                ], self::inboxIsDouble(...)),
                new Step('fill weft_inbox.body_hash of older rows', ['UPDATE weft_inbox SET body_hash = body WHERE body_hash IS NULL'], self::inboxIsDouble(...), data: true),
            ],
            // A row inserted without body_hash is inserted by the trigger instead; RAISE(IGNORE) drops the original.
            Driver::Sqlite => [new Step($summary, [
                'ALTER TABLE weft_inbox RENAME COLUMN body TO body_hash',
                'ALTER TABLE weft_inbox ADD COLUMN body BIGINT',
                'UPDATE weft_inbox SET body = body_hash',
                'CREATE TRIGGER weft_inbox_body BEFORE INSERT ON weft_inbox WHEN NEW.body_hash IS NULL BEGIN '
                    . 'INSERT INTO weft_inbox (message_id, consumer, body_hash, handled_at, body) VALUES (NEW.message_id, NEW.consumer, NEW.body, NEW.handled_at, NEW.body); '
                    . 'SELECT RAISE(IGNORE); END',
                'CREATE TRIGGER weft_inbox_body_hash AFTER INSERT ON weft_inbox WHEN NEW.body IS NULL BEGIN '
                    . 'UPDATE weft_inbox SET body = NEW.body_hash WHERE message_id = NEW.message_id AND consumer = NEW.consumer; END',
            ], $needed)],
        };
    }

    /** Rows that workers of 0.1 insert have no cause. */
    private static function outboxTo2(Driver $driver): Step
    {
        $outbox = self::outbox();
        $column = $outbox->columns[\count($outbox->columns) - 1]->sql($driver);
        [$index] = $outbox->indexes;
        $statements = $driver === Driver::Mysql
            ? ["ALTER TABLE weft_outbox ADD COLUMN {$column}, ADD INDEX {$index->name} ({$index->on()})"]
            : ["ALTER TABLE weft_outbox ADD COLUMN {$column}", $index->create($outbox->name, $driver)];

        return new Step('add column weft_outbox.cause', $statements, static fn(Catalog $catalog): bool => $catalog->isTable('weft_outbox') && !$catalog->hasColumn('weft_outbox', 'cause'));
    }

    /** Schedules of 0.1 are known by their name alone, and have one time until which they have fired. */
    private static function schedulesTo2(Driver $driver): Step
    {
        $table = self::schedules();
        [, $type, , , $fired] = \array_map(static fn(Column $column): string => $column->sql($driver), $table->columns);
        $statements = match ($driver) {
            Driver::Postgres => ["ALTER TABLE weft_schedules ADD COLUMN {$type}, ADD COLUMN {$fired}, DROP CONSTRAINT weft_schedules_pkey, ADD PRIMARY KEY (name, type)"],
            Driver::Mysql => ["ALTER TABLE weft_schedules ADD COLUMN {$type} AFTER name, ADD COLUMN {$fired}, DROP PRIMARY KEY, ADD PRIMARY KEY (name, type)"],
            // SQLite cannot change a primary key.
            Driver::Sqlite => [
                'ALTER TABLE weft_schedules RENAME TO weft_schedules_1',
                ...$table->create($driver),
                'INSERT INTO weft_schedules (name, rule, due) SELECT name, rule, due FROM weft_schedules_1',
                'DROP TABLE weft_schedules_1',
            ],
        };

        return new Step('add columns weft_schedules.type and weft_schedules.fired', $statements, static fn(Catalog $catalog): bool => $catalog->isTable('weft_schedules') && !$catalog->hasColumn('weft_schedules', 'type'));
    }

    /** @return list<Step> */
    private static function inboxFrom1(Driver $driver): array
    {
        $summary = 'drop column weft_inbox.body, the old name of body_hash';

        return match ($driver) {
            Driver::Postgres => [new Step(
                'drop the view weft_inbox, which has body_hash under its old name too',
                ['DROP VIEW weft_inbox', 'ALTER TABLE weft_inbox_2 RENAME TO weft_inbox'],
                static fn(Catalog $catalog): bool => $catalog->isView('weft_inbox'),
            )],
            Driver::Mysql => [new Step($summary, [
                'DROP TRIGGER IF EXISTS weft_inbox_body',
                'ALTER TABLE weft_inbox MODIFY COLUMN body_hash BIGINT NOT NULL, DROP COLUMN body',
            ], self::inboxIsDouble(...))],
            Driver::Sqlite => [new Step($summary, [
                'DROP TRIGGER IF EXISTS weft_inbox_body',
                'DROP TRIGGER IF EXISTS weft_inbox_body_hash',
                'ALTER TABLE weft_inbox DROP COLUMN body',
            ], self::inboxIsDouble(...))],
        };
    }

    private static function inboxIsDouble(Catalog $catalog): bool
    {
        return $catalog->isTable('weft_inbox') && $catalog->hasColumn('weft_inbox', 'body') && $catalog->hasColumn('weft_inbox', 'body_hash');
    }
}
