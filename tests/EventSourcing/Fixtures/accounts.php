<?php

declare(strict_types=1);

namespace Weft\Tests\EventSourcing\Fixtures;

use Weft\Bus\MessageType;
use Weft\EventSourcing\AggregateRoot;
use Weft\EventSourcing\Applies;
use Weft\EventSourcing\RecordsEvents;

#[MessageType('account.opened', version: 3)]
final class AccountOpened
{
    public function __construct(public readonly string $id, public readonly string $owner, public readonly string $currency) {}
}

#[MessageType('account.deposited')]
final class Deposited
{
    public function __construct(public readonly int $amount) {}
}

#[MessageType('account.noted')]
final class Noted
{
    public function __construct(public readonly string $text) {}
}

#[AggregateRoot('account', snapshotEvery: 10)]
final class Account
{
    use RecordsEvents;

    private string $id;
    private string $currency;
    public int $balance = 0;
    public int $deposits = 0;

    /** How often an event was applied to this object. */
    public static int $applied = 0;

    public static function open(string $id, string $owner): self
    {
        $account = new self();
        $account->record(new AccountOpened($id, $owner, 'EUR'));

        return $account;
    }

    public function deposit(int $amount): void
    {
        $amount > 0 || throw new \DomainException('nothing to deposit');
        $this->record(new Deposited($amount));
    }

    public function note(string $text): void
    {
        $this->record(new Noted($text));
    }

    public function end(string $reason): void
    {
        $this->close($reason);
    }

    #[Applies]
    private function opened(AccountOpened $event): void
    {
        $this->id = $event->id;
        $this->currency = $event->currency;
        self::$applied++;
    }

    #[Applies]
    private function deposited(Deposited $event): void
    {
        $this->balance += $event->amount;
        $this->deposits++;
        self::$applied++;
    }

    public function __toString(): string
    {
        return "{$this->id}: {$this->balance} {$this->currency}";
    }
}
