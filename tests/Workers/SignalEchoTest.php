<?php

declare(strict_types=1);

namespace Weft\Tests\Workers;

use PHPUnit\Framework\TestCase;
use Weft\Workers\Internal\Signal;
use Weft\Workers\Internal\SignalEcho;

final class SignalEchoTest extends TestCase
{
    public function testTheSameSignalWithinATenthOfASecondIsAnEchoAndALaterOrAnotherOneIsNot(): void
    {
        $echo = new SignalEcho();

        self::assertFalse($echo->hears(Signal::SIGTERM, 10.0));
        self::assertTrue($echo->hears(Signal::SIGTERM, 10.001));
        self::assertTrue($echo->hears(Signal::SIGTERM, 10.09));
        self::assertFalse($echo->hears(Signal::SIGTERM, 10.11), 'echoes do not prolong the time');
        self::assertFalse($echo->hears(Signal::SIGINT, 10.12));
        self::assertTrue($echo->hears(Signal::SIGINT, 10.13));
    }
}
