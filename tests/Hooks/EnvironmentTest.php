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
        foreach (['yes', 'TRUE', '1'] as $value) {
            yield $value => ["WEFT_HOOKS=$value", Hook::cases()];
        }
        foreach (['no', 'false', '0'] as $value) {
            yield $value => ["WEFT_HOOKS=$value", []];
        }
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

    /** @return iterable<string, array{string, string}> */
    public static function unknownNames(): iterable
    {
        yield 'misspelt' => ['sleep,sokets', 'sokets'];
        yield 'all' => ['all', 'all'];
        yield 'none' => ['none', 'none'];
    }

    /** @dataProvider unknownNames */
    #[DataProvider('unknownNames')]
    public function testAnUnknownNameIsRefusedWithTheKnownOnes(string $value, string $unknown): void
    {
        \putenv("WEFT_HOOKS=$value");

        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage("\"$unknown\": it must be \"on\", \"off\" or some of sleep, sockets, pipes");
        Hook::fromEnvironment();
    }

    /** @return iterable<string, array{string, bool}> */
    public static function switches(): iterable
    {
        yield 'unset' => ['WEFT_QUEUE_FOR_HANDLES', false];
        yield 'empty' => ['WEFT_QUEUE_FOR_HANDLES=', false];
        foreach (['1', 'true', 'yes', 'on', 'YES', 'True'] as $value) {
            yield $value => ["WEFT_QUEUE_FOR_HANDLES=$value", true];
        }
        foreach (['0', 'false', 'no', 'off', 'Off'] as $value) {
            yield $value => ["WEFT_QUEUE_FOR_HANDLES=$value", false];
        }
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
        \putenv('WEFT_QUEUE_FOR_HANDLES=perhaps');

        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage('WEFT_QUEUE_FOR_HANDLES is "perhaps": it must be true, false, 1, 0, yes, no, on or off');
        Hook::queuesForHandles();
    }
}
