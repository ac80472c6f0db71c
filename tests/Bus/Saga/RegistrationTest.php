<?php

declare(strict_types=1);

namespace Weft\Tests\Bus\Saga;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Bus\Bus;
use Weft\Bus\DuplicateHandlerError;
use Weft\Bus\InvalidHandlerError;
use Weft\Bus\InvalidMessageClassError;
use Weft\Bus\Saga\Saga;
use Weft\Bus\Saga\SagaContext;
use Weft\Bus\Saga\SagaListener;
use Weft\Bus\Saga\SagaStart;
use Weft\Bus\Saga\SagaTimeout;
use Weft\Bus\Saga\UnmatchedPolicy;
use Weft\Bus\Transport\Memory;
use Weft\Sql\Database;
use Weft\Tests\Bus\Saga\Fixtures\OrderPlaced;
use Weft\Tests\Bus\Saga\Fixtures\Tick;
use Weft\Tests\Bus\Saga\Fixtures\Ticker;

require_once __DIR__ . '/Fixtures/checkout.php';
require_once __DIR__ . '/Fixtures/steps.php';

/** Classes that cannot be sagas are refused when they are registered, by name. */
final class RegistrationTest extends TestCase
{
    /** @dataProvider mistakes */
    #[DataProvider('mistakes')]
    public function testAMistakeIsNamedWhenTheSagaIsRegistered(string $class, string $message, string $error = InvalidHandlerError::class): void
    {
        $this->expectException($error);
        $this->expectExceptionMessage($message);
        self::bus()->handlers($class);
    }

    public static function mistakes(): iterable
    {
        yield 'no such class' => ['Nobody', 'Class Nobody cannot be registered as a saga: it does not exist'];
        yield 'no attribute' => [OrderPlaced::class, 'is not marked with #[Saga]'];
        yield 'a constructor' => [NeedsArguments::class, 'has a constructor with required arguments'];
        yield 'no start' => [NeverStarts::class, 'has no method marked with #[SagaStart]'];
        yield 'two marks' => [TwoMarks::class, 'TwoMarks::start() has more than one of'];
        yield 'no correlation' => [FindsNothing::class, 'FindsNothing::start() needs one property or one header'];
        yield 'no property' => [FindsNoProperty::class, 'correlates by the property $number, which ' . OrderPlaced::class . ' does not have'];
        yield 'a private method' => [Hidden::class, 'Hidden::start() is not public'];
        yield 'an unknown parameter' => [AsksForMore::class, 'has the parameter $heap (SplHeap), which cannot be resolved; available are SagaContext, Context, Transaction, Database'];
        yield 'state without a JSON form' => [HoldsAClosure::class, 'Class ' . HoldsAClosure::class . ' cannot be a saga: property $closure', InvalidMessageClassError::class];
    }

    public function testASagaRegisteredAsAnObjectIsToldToBeRegisteredByItsClass(): void
    {
        $this->expectException(InvalidHandlerError::class);
        $this->expectExceptionMessage(Ticker::class . ' is a saga: register it by its class, handlers(' . Ticker::class . '::class)');

        self::bus()->handlers(new Ticker());
    }

    public function testASagaNeedsADatabaseAndANameOfItsOwn(): void
    {
        try {
            Bus::connect(new Memory())->handlers(Ticker::class);
            self::fail('registered');
        } catch (InvalidHandlerError $invalid) {
            self::assertStringContainsString('needs a database', $invalid->getMessage());
        }
        $bus = self::bus()->handlers(Ticker::class);
        foreach ([Ticker::class => 'is registered twice', SameName::class => 'has the same name "ticker" as another saga'] as $class => $message) {
            try {
                $bus->handlers($class);
                self::fail('registered');
            } catch (InvalidHandlerError $invalid) {
                self::assertStringContainsString($message, $invalid->getMessage());
            }
        }
        // Nothing of a refused saga is registered: the second refusal has the same reason.
        foreach ([1, 2] as $_) {
            try {
                $bus->handlers(SameTimeout::class);
                self::fail('registered');
            } catch (DuplicateHandlerError $error) {
                self::assertStringContainsString(SameTimeout::class, $error->getMessage());
            }
        }
    }

    public function testInvalidAttributesAreRefused(): void
    {
        $nonsense = [static fn() => new Saga(name: ''), static fn() => new Saga(name: \str_repeat('x', 101)), static fn() => new Saga(expires: 0.0), static fn() => new Saga(expires: \NAN), static fn() => new Saga(version: 0), static fn() => new Saga(ended: UnmatchedPolicy::Retry), static fn() => new SagaStart(existing: UnmatchedPolicy::Retry)];
        foreach ($nonsense as $make) {
            try {
                $make();
                self::fail('accepted');
            } catch (\ValueError $error) {
                self::assertNotSame('', $error->getMessage());
            }
        }
    }

    private static function bus(): Bus
    {
        return Bus::connect(new Memory(), Database::connect('sqlite::memory:'));
    }
}

#[Saga(by: 'orderId')]
final class NeedsArguments
{
    public function __construct(public string $what) {}

    #[SagaStart]
    public function start(OrderPlaced $event): void {}
}

#[Saga(by: 'orderId')]
final class NeverStarts
{
    #[SagaListener]
    public function on(OrderPlaced $event): void {}
}

#[Saga(by: 'orderId')]
final class TwoMarks
{
    #[SagaStart, SagaListener]
    public function start(OrderPlaced $event): void {}
}

#[Saga]
final class FindsNothing
{
    #[SagaStart]
    public function start(OrderPlaced $event): void {}
}

#[Saga(by: 'number')]
final class FindsNoProperty
{
    #[SagaStart]
    public function start(OrderPlaced $event): void {}
}

#[Saga(by: 'orderId')]
final class Hidden
{
    #[SagaStart]
    private function start(OrderPlaced $event): void {}
}

#[Saga(by: 'orderId')]
final class AsksForMore
{
    #[SagaStart]
    public function start(OrderPlaced $event, SagaContext $saga, \SplHeap $heap): void {}
}

#[Saga(by: 'orderId')]
final class HoldsAClosure
{
    public ?\Closure $closure = null;

    #[SagaStart]
    public function start(OrderPlaced $event): void {}
}

#[Saga(name: 'ticker', by: 'orderId')]
final class SameName
{
    #[SagaStart]
    public function start(OrderPlaced $event): void {}
}

#[Saga(by: 'orderId')]
final class SameTimeout
{
    #[SagaStart]
    public function start(OrderPlaced $event): void {}

    #[SagaTimeout]
    public function tick(Tick $tick): void {}
}
