<?php

declare(strict_types=1);

namespace Weft\Tests\Examples;

require_once __DIR__ . '/RinhaConformance.php';

final class RinhaSharedInsertsTest extends RinhaConformance
{
    public function testPeopleWhoArriveTogetherShareTransactions(): void
    {
        self::assertSame([201 => 100], $this->createAtOnce(100, static fn (int $i): string => "n$i"));

        self::assertLessThan(100, $this->transactions());
    }

    protected static function inserts(): string
    {
        return 'shared';
    }
}
