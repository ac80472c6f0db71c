<?php

declare(strict_types=1);

namespace Weft\Tests\Bus\Fixtures;

use DateTimeImmutable as Moment;
use Weft\Bus\MessageType;

final class StoreCustomer
{
    public function __construct(
        public readonly string $id,
        public readonly string $name,
        public readonly string $email,
    ) {}
}

final class CustomerStored
{
    public function __construct(public readonly string $id) {}
}

#[MessageType('customer.forget', version: 3)]
final class ForgetCustomer
{
    public function __construct(public readonly string $id) {}
}

enum Currency: string
{
    case Euro = 'EUR';
    case Dollar = 'USD';
}

enum Priority: int
{
    case Low = 1;
    case High = 2;
}

enum Pure
{
    case One;
}

final class Item
{
    /** @param array<string, string> $labels */
    public function __construct(
        public readonly string $sku,
        public readonly float $price,
        public readonly array $labels = [],
    ) {}
}

abstract class Document
{
    private string $origin = 'unknown';

    public function comesFrom(string $origin): static
    {
        $this->origin = $origin;

        return $this;
    }

    public function origin(): string
    {
        return $this->origin;
    }
}

final class Order extends Document
{
    public static int $made = 0;

    /** @var list<list<int>> */
    public array $grid = [];

    /** @var array<int, Item|null> */
    public array $shelf = [];

    /** @var array<string, mixed> */
    public array $extra = [];

    public ?Order $replaces = null;
    public int $revision = 1;

    /**
     * @param non-empty-list<Item> $items
     * @param Moment[]             $deadlines
     */
    private function __construct(
        public readonly int $number,
        private readonly Currency $currency,
        public readonly ?Priority $priority,
        public readonly array $items,
        public readonly Moment $placedAt,
        public readonly array $deadlines,
        public readonly bool $gift = false,
        public readonly ?Moment $paidAt = new Moment('2020-01-01T00:00:00Z'),
    ) {
        self::$made++;
    }

    public static function place(int $number, Item ...$items): self
    {
        $at = new Moment('2026-03-04T05:06:07.000089+02:00');

        return new self($number, Currency::Euro, Priority::High, $items, $at, [$at], true, null);
    }

    public function currency(): Currency
    {
        return $this->currency;
    }
}

final class Measured
{
    public function __construct(public float $value, public mixed $context = null) {}
}

final class Dated
{
    public function __construct(public Moment $at) {}
}

final class Nothing {}

final class Cloned
{
    public int $clones = 0;

    public function __construct(public string $name) {}

    public function __clone()
    {
        $this->clones++;
    }
}
