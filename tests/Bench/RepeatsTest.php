<?php

declare(strict_types=1);

namespace Weft\Tests\Bench;

use PHPUnit\Framework\TestCase;
use Weft\Bench\Measured;
use Weft\Bench\Repeats;

require_once __DIR__ . '/../../bench/autoload.php';

final class RepeatsTest extends TestCase
{
    public function testRunsThatFailedAreCountedInTheLabelAndNowhereElse(): void
    {
        $repeats = new Repeats([$this->measured(2.0), $this->measured(null), $this->measured(4.0)]);

        self::assertSame('go (1 of 3 failed)', $repeats->label('go'));
        self::assertSame(['3.0 (2.0–4.0)', '6'], [$repeats->spread('seconds', 1), $repeats->sum('seconds')]);
    }

    public function testWithoutANumberThereIsADash(): void
    {
        $none = new Repeats([$this->measured(null)]);

        self::assertSame(['–', '–', '0'], [$none->spread('seconds', 1), $none->ratio('seconds', new Repeats([$this->measured(1.0)])), $none->sum('seconds')]);
        self::assertSame('–', (new Repeats([$this->measured(1.0)]))->ratio('seconds', new Repeats([])));
    }

    public function testARatioIsHowManyTimesItsOwnTheOthersIs(): void
    {
        $own = new Repeats([$this->measured(2.0), $this->measured(2.0), $this->measured(9.0)]);

        self::assertSame('1.50', $own->ratio('seconds', new Repeats([$this->measured(3.0)])));
        self::assertSame('–', (new Repeats([$this->measured(0.0)]))->ratio('seconds', $own));
    }

    private function measured(?float $seconds): Measured
    {
        return new class ($seconds) implements Measured {
            public function __construct(private readonly ?float $seconds)
            {
            }

            public function number(string $name): ?float
            {
                return $this->seconds;
            }

            public function failure(): ?string
            {
                return $this->seconds === null ? 'it fell over' : null;
            }
        };
    }
}
