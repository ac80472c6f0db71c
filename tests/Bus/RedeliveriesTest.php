<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Psr\Log\NullLogger;
use Weft\Bus\Internal\Persistence\Redeliveries;
use Weft\Bus\Internal\Persistence\Tables;
use Weft\Sql\Internal\Schema\Migrator;
use Weft\Tests\InTask;
use Weft\Tests\Sql\Support\Databases;

use function Weft\all;

final class RedeliveriesTest extends TestCase
{
    use Databases;
    use InTask;

    private const MESSAGES = 30;

    /**
     * After a worker was killed, many of its messages are redelivered at the same time.
     *
     * @dataProvider databases
     */
    #[DataProvider('databases')]
    public function testManyMessagesAreCountedAtTheSameTime(string $kind): void
    {
        $database = $this->database($kind);
        (new Migrator($database))->ensure(Tables::component());
        $redeliveries = new Redeliveries($database, new NullLogger());
        $count = static fn(): array => all(\array_map(static fn(int $i): \Closure => static fn(): int => $redeliveries->note("message {$i}", 42), \range(1, self::MESSAGES)));

        self::assertSame(\array_fill(0, self::MESSAGES, 1), $count());
        self::assertSame(\array_fill(0, self::MESSAGES, 2), $count());
        self::assertSame(2, $redeliveries->of('message 7', 42));
        self::assertSame(0, $redeliveries->of('message 7', 43));
    }
}
