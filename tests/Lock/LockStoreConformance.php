<?php

declare(strict_types=1);

namespace Weft\Tests\Lock;

use PHPUnit\Framework\TestCase;
use Weft\Lock\LockStore;

use function Weft\all;
use function Weft\delay;
use function Weft\run;

/** What every store of locks promises, as tests. */
abstract class LockStoreConformance extends TestCase
{
    /** Every call within one test gives one that sees the same locks. */
    abstract protected function store(): LockStore;

    public function testAFreeLockIsTakenAndATakenOneIsNot(): void
    {
        $store = $this->store();

        self::assertSame(1, $store->acquire('a', 'one', 10.0));
        self::assertNull($this->store()->acquire('a', 'two', 10.0));
        self::assertNull($store->acquire('a', 'one', 10.0), 'not even by its owner');
        self::assertSame(1, $store->acquire('b', 'two', 10.0), 'another name is another lock');
    }

    public function testEachOwnerHasAGreaterNumberThanThoseBefore(): void
    {
        $store = $this->store();
        $fences = [];
        foreach (['one', 'two', 'three'] as $owner) {
            $fences[] = $store->acquire('a', $owner, 10.0);
            self::assertTrue($store->release('a', $owner));
        }

        self::assertSame([1, 2, 3], $fences);
    }

    public function testOnlyTheOwnerGivesBackAndRenews(): void
    {
        $store = $this->store();
        $store->acquire('a', 'one', 10.0);

        self::assertFalse($store->release('a', 'two'));
        self::assertFalse($store->renew('a', 'two', 10.0));
        self::assertTrue($store->renew('a', 'one', 10.0));
        self::assertTrue($store->release('a', 'one'));
        self::assertFalse($store->release('a', 'one'), 'once');
        self::assertFalse($store->renew('a', 'one', 10.0));
        self::assertFalse($store->release('never locked', 'one'));
    }

    public function testALockEndsByItselfAndThenItsOwnerHasNothingLeft(): void
    {
        $store = $this->store();
        $store->acquire('a', 'one', 1.5);
        self::assertNull($store->acquire('a', 'two', 10.0));
        delay(1.6);

        self::assertFalse($store->renew('a', 'one', 10.0));
        self::assertFalse($store->release('a', 'one'));
        self::assertSame(2, $store->acquire('a', 'two', 10.0));
        self::assertFalse($store->release('a', 'one'));
        self::assertNull($store->acquire('a', 'three', 10.0));
    }

    public function testARenewedLockLivesOn(): void
    {
        $store = $this->store();
        $store->acquire('a', 'one', 1.5);
        self::assertTrue($store->renew('a', 'one', 60.0));
        delay(1.6);

        self::assertNull($store->acquire('a', 'two', 1.0));
    }

    public function testNamesDifferByEveryByte(): void
    {
        $store = $this->store();
        $names = ['a', 'A', 'a ', 'ä', 'Ä', \str_repeat('x', 200)];

        self::assertSame(\array_fill(0, \count($names), 1), \array_map(static fn(string $name): ?int => $store->acquire($name, 'one', 10.0), $names));
    }

    public function testOneOfManyConcurrentRequestsGetsTheLock(): void
    {
        $this->store();
        foreach (['one', 'two', 'three'] as $name) {
            $fences = run(fn(): array => all(\array_map(fn(int $i): \Closure => fn(): ?int => $this->store()->acquire($name, "owner {$i}", 10.0), \range(1, 20))));

            self::assertSame([1], \array_values(\array_filter($fences)));
        }
    }
}
