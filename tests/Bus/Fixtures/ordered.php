<?php

declare(strict_types=1);

namespace Weft\Tests\Bus\Fixtures;

use Weft\Bus\Expires;
use Weft\Bus\FairBy;
use Weft\Bus\OrderedBy;
use Weft\Bus\Priority;

#[OrderedBy('account', group: 'account')]
final class Deposit
{
    public function __construct(public readonly ?string $account, public readonly int $number) {}
}

#[OrderedBy('account', group: 'account')]
final class Withdraw
{
    public function __construct(public readonly string $account, public readonly int $number) {}
}

#[FairBy('tenant')]
final class Report
{
    public function __construct(public readonly string $tenant, public readonly int $number) {}
}

#[Priority(9)]
#[Expires(2.0)]
final class Alarm
{
    public function __construct(public readonly int $number) {}
}
