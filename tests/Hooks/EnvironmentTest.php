<?php

declare(strict_types=1);

namespace Weft\Tests\Hooks;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Runtime\Hook;

/** `WEFT_HOOKS` chooses what suspends. */
final class EnvironmentTest extends TestCase
{
    private string|false $before;

    protected function setUp(): void
    {
        $this->before = \getenv('WEFT_HOOKS');
    }

    protected function tearDown(): void
    {
        \putenv($this->before === false ? 'WEFT_HOOKS' : "WEFT_HOOKS=$this->before");
    }

    /** @return iterable<string, array{string, list<Hook>}> */
    public static function values(): iterable
    {
        yield 'unset' => ['WEFT_HOOKS', Hook::cases()];
        yield 'on' => ['WEFT_HOOKS=on', Hook::cases()];
        yield 'off' => ['WEFT_HOOKS=off', []];
        yield 'one' => ['WEFT_HOOKS=sleep', [Hook::Sleep]];
        yield 'some' => ['WEFT_HOOKS=pipes, sockets', [Hook::Pipes, Hook::Sockets]];
    }

    /**
     * @dataProvider values
     *
     * @param list<Hook> $expected
     */
    #[DataProvider('values')]
    public function testTheVariableNamesTheHooks(string $variable, array $expected): void
    {
        \putenv($variable);

        self::assertSame($expected, Hook::fromEnvironment());
    }

    public function testAnUnknownNameIsRefusedWithTheKnownOnes(): void
    {
        \putenv('WEFT_HOOKS=sleep,sokets');

        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage('"sokets": it must be "off" or some of sleep, sockets, pipes');
        Hook::fromEnvironment();
    }
}
