<?php

declare(strict_types=1);

namespace Weft\Tests\Memory;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Tests\Runtime\Subprocess;

/**
 * Calls everything that the extension has with random values of all types, in and outside of tasks: exceptions are the worst
 * that may come of it. WEFT_MEMORY_SEEDS sets how many programs of random calls run; a failure names its seed.
 */
final class RandomCallsTest extends TestCase
{
    private const CALLS = 1_500;

    /** @return iterable<string, array{int}> */
    public static function seeds(): iterable
    {
        $seeds = (int) (getenv('WEFT_MEMORY_SEEDS') ?: 2);
        for ($seed = 1; $seed <= $seeds; $seed++) {
            yield "seed $seed" => [$seed];
        }
    }

    /** @dataProvider seeds */
    #[DataProvider('seeds')]
    public function testRandomCallsOnlyThrow(int $seed): void
    {
        $program = Subprocess::run(sprintf('Weft\Tests\Memory\RandomCalls::run(%d, %d);', $seed, self::CALLS));

        self::assertNull($program->signal, "The program died of signal $program->signal: $program->errors");
        self::assertSame(0, $program->exitCode, $program->errors . $program->output);
        self::assertStringNotContainsString('Rust panic', $program->output);
        self::assertMatchesRegularExpression('/\d+ calls, \d+ thrown/', $program->output, $program->errors);
    }
}
