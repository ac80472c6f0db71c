<?php

declare(strict_types=1);

namespace Weft\Tests\Hooks;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Runtime\Hook;

/** `WEFT_HOOKS` chooses what suspends, `WEFT_QUEUE_FOR_HANDLES` what happens to a task that uses the handle of another. */
final class EnvironmentTest extends TestCase
{
    private const VARIABLES = ['WEFT_HOOKS', 'WEFT_QUEUE_FOR_HANDLES'];

    /** @var array<string, string|false> */
    private array $before;

    protected function setUp(): void
    {
        foreach (self::VARIABLES as $variable) {
            $this->before[$variable] = \getenv($variable);
        }
    }

    protected function tearDown(): void
    {
        foreach ($this->before as $variable => $value) {
            \putenv($value === false ? $variable : "$variable=$value");
        }
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

    /** @return iterable<string, array{string, bool}> */
    public static function switches(): iterable
    {
        yield 'unset' => ['WEFT_QUEUE_FOR_HANDLES', false];
        yield 'empty' => ['WEFT_QUEUE_FOR_HANDLES=', false];
        yield '0' => ['WEFT_QUEUE_FOR_HANDLES=0', false];
        yield '1' => ['WEFT_QUEUE_FOR_HANDLES=1', true];
    }

    /** @dataProvider switches */
    #[DataProvider('switches')]
    public function testTheVariableHasTasksWaitForTheirTurn(string $variable, bool $expected): void
    {
        \putenv($variable);

        self::assertSame($expected, Hook::queuesForHandles());
    }

    public function testAValueThatIsNoneIsRefused(): void
    {
        \putenv('WEFT_QUEUE_FOR_HANDLES=yes');

        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage('WEFT_QUEUE_FOR_HANDLES is "yes": it must be 0 or 1');
        Hook::queuesForHandles();
    }
}
