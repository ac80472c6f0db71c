<?php

declare(strict_types=1);

namespace Weft\Tests\Bus\Saga\Fixtures;

use Weft\Bus\Context;
use Weft\Bus\Saga\Saga;
use Weft\Bus\Saga\SagaContext;
use Weft\Bus\Saga\SagaListener;
use Weft\Bus\Saga\SagaStart;
use Weft\Bus\Saga\SagaTimeout;
use Weft\Bus\Saga\UnmatchedPolicy;
use Weft\Bus\SendOptions;

final class OrderPlaced
{
    public function __construct(public readonly string $orderId, public readonly int $total = 10, public readonly float $late = 3600.0) {}
}

final class PaymentReceived
{
    public function __construct(public readonly string $orderId, public readonly int $amount = 10) {}
}

final class ParcelDelivered
{
    public function __construct(public readonly string $parcel) {}
}

final class OrderCancelled
{
    public function __construct(public readonly ?string $orderId, public readonly bool $broken = false) {}
}

final class OrderNoted
{
    public function __construct(public readonly string $orderId) {}
}

final class Ship
{
    public function __construct(public readonly string $orderId) {}
}

final class PaymentLate
{
    public function __construct(public readonly int $reminder) {}
}

final class Sent
{
    public function __construct(public readonly string $what) {}
}

/** Pays, ships, and reminds of what is not paid. */
#[Saga(name: 'checkout', by: 'orderId', expires: 3600.0, publishEvents: true)]
final class Checkout
{
    private int $total = 0;
    private int $paid = 0;
    private ?string $late = null;
    public int $reminders = 0;

    /** @var list<string> */
    public array $seen = [];

    #[SagaStart]
    public function placed(OrderPlaced $event, SagaContext $saga): void
    {
        $this->total = $event->total;
        $this->late = $saga->timeout(new PaymentLate(1), new SendOptions(delay: $event->late));
    }

    #[SagaListener]
    public function paid(PaymentReceived $event, SagaContext $saga, Context $context): void
    {
        $this->paid += $event->amount;
        if ($this->paid >= $this->total && $this->late !== null) {
            $saga->cancel($this->late);
            $this->late = null;
            $saga->associate('parcel', "parcel of {$saga->id()}");
            $saga->send(new Ship($saga->id()));
        }
    }

    #[SagaListener(by: 'parcel')]
    public function delivered(ParcelDelivered $event, SagaContext $saga): void
    {
        $saga->complete('delivered');
    }

    #[SagaListener(missing: UnmatchedPolicy::Ignore)]
    public function cancelled(OrderCancelled $event, SagaContext $saga): void
    {
        $this->seen[] = 'cancelled';
        $saga->publish(new Sent('never'));
        $event->broken ? throw new \DomainException('broken') : $saga->fail('cancelled');
    }

    #[SagaListener(missing: UnmatchedPolicy::Retry)]
    public function noted(OrderNoted $event): void {}

    #[SagaTimeout]
    public function late(PaymentLate $late, SagaContext $saga): void
    {
        $this->reminders = $late->reminder;
        $late->reminder < 3 ? $this->late = $saga->timeout(new PaymentLate($late->reminder + 1), new SendOptions(delay: 0.05)) : $saga->fail('not paid');
    }
}
