<?php

declare(strict_types=1);

namespace Weft\Tests\Examples;

require_once __DIR__ . '/RinhaConformance.php';

final class RinhaSingleInsertsTest extends RinhaConformance
{
    public function testEachPersonIsATransactionOfItsOwn(): void
    {
        self::assertSame([201 => 100], $this->createAtOnce(100, static fn (int $i): string => "n$i"));

        self::assertSame(100, $this->transactions());
    }

    protected static function inserts(): string
    {
        return 'single';
    }
}
