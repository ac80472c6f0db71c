<?php

declare(strict_types=1);

namespace Weft\EventSourcing;

use Weft\Bus\Internal\Identifier;
use Weft\Sql\Connection;
use Weft\Sql\Transaction;

/** Values that belong to one owner each, such as e-mail addresses: uniqueness across aggregates, which their streams alone cannot ensure. */
final class UniqueIndex
{
    /** @param string $name 1 to 100 bytes of UTF-8 without NUL */
    public function __construct(
        private readonly EventStore $store,
        private readonly string $name,
    ) {
        Identifier::check('The name of a unique index', $name, 100);
    }

    /**
     * Claims a value as part of a transaction. A concurrent claim waits for its end. Does nothing if the owner has the value already.
     *
     * @param string $value 1 to 200 bytes of UTF-8 without NUL, compared bytewise
     * @param string $owner at most 200 bytes of UTF-8 without NUL
     *
     * @throws ValueTakenException when another owner has it; the transaction can still be used
     */
    public function claim(Transaction $transaction, string $value, string $owner): void
    {
        if (!$this->store->storage()->claim($transaction, $this->name, self::checked($value), self::checkedOwner($owner))) {
            throw new ValueTakenException("\"{$value}\" of \"{$this->name}\" is already taken and not available to \"{$owner}\"");
        }
    }

    /** @return bool whether the owner had the value */
    public function release(Connection $connection, string $value, string $owner): bool
    {
        return $this->store->storage()->release($connection, $this->name, self::checked($value), self::checkedOwner($owner));
    }

    /**
     * Gives an owner another value for one that it has, as part of a transaction. A concurrent change of the same value waits for its end.
     *
     * @throws ValueTakenException when another owner has the new value, or the owner does not have the old one; the transaction can still be used
     */
    public function change(Transaction $transaction, string $from, string $to, string $owner): void
    {
        if (!$this->store->storage()->lock($transaction, $this->name, self::checked($from), self::checkedOwner($owner))) {
            throw new ValueTakenException("\"{$owner}\" does not have \"{$from}\" of \"{$this->name}\"");
        }
        $this->claim($transaction, $to, $owner);
        $from === $to || $this->release($transaction, $from, $owner);
    }

    /** @return int number of values that the owner had */
    public function releaseAll(Connection $connection, string $owner): int
    {
        return $this->store->storage()->releaseAll($connection, $this->name, self::checkedOwner($owner));
    }

    public function owner(Connection $connection, string $value): ?string
    {
        return $this->store->storage()->owner($connection, $this->name, self::checked($value));
    }

    private static function checked(string $value): string
    {
        Identifier::check('A unique value', $value, 200);

        return $value;
    }

    /** MariaDB would store the beginning of a longer one, for which no owner could release the value. */
    private static function checkedOwner(string $owner): string
    {
        $owner === '' || Identifier::check('The owner of a unique value', $owner, 200);

        return $owner;
    }
}
