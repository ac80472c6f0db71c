<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Bus\Bus;
use Weft\Bus\ConsumeOptions;
use Weft\Bus\DeadLetterFilter;
use Weft\Bus\Transport\Memory;
use Weft\Tests\Bus\Fixtures\CustomerStored;
use Weft\Tests\Bus\Fixtures\Servers;
use Weft\Tests\Bus\Fixtures\StoreCustomer;
use Weft\Tests\Bus\Fixtures\TemporaryDatabase;

/** Everything a bus can do works in a script without Weft\run(), in PHP-FPM for instance: the script waits. */
final class PlainScriptTest extends BusTestCase
{
    use Servers;
    use TemporaryDatabase;

    public static function buses(): iterable
    {
        yield 'memory' => [static fn(): Bus => Bus::connect(new Memory())];
        yield 'SQLite' => [static fn(self $test): Bus => Bus::connect($test->dsn())];
        yield 'RabbitMQ' => [static fn(self $test): Bus => Bus::connect($test->brokerDsn())];
        yield 'RabbitMQ and PostgreSQL' => [static fn(self $test): Bus => Bus::connect($test->brokerDsn(), $test->database())];
        yield 'PostgreSQL' => [static fn(self $test): Bus => Bus::connect($test->databaseDsn(), $test->database())];
    }

    /** @dataProvider buses */
    #[DataProvider('buses')]
    public function testItSendsConsumesAndWorksOnDeadLetters(\Closure $connect): void
    {
        $handled = $heard = [];
        $bus = $connect($this)->handlers(
            self::storing(static function (StoreCustomer $command) use (&$handled): void {
                $handled[] = $command->id;
                $command->name === 'good' || throw new \DomainException($command->name);
            }),
            self::listening(static function (CustomerStored $event) use (&$heard): void {
                $heard[] = $event->id;
            }),
        );
        $bus->queue(self::QUEUE)->declare();
        $ids = \array_map(static fn(string $id): string => $bus->send(new StoreCustomer($id, 'bad', '')), ['1', '2', '3']);
        self::assertSame(2, $bus->sendAll([new StoreCustomer('4', 'good', ''), new StoreCustomer('5', 'good', '')]));
        $bus->publish(new CustomerStored('6'));
        self::assertSame(6, $bus->queue(self::QUEUE)->depth());
        self::assertSame(6, $bus->consume(self::QUEUE, concurrency: 1, options: new ConsumeOptions(stopWhenEmpty: true)));
        self::assertSame([['1', '2', '3', '4', '5'], ['6']], [$handled, $heard]);

        $letters = $bus->queue(self::QUEUE)->deadLetters();
        self::assertCount(3, $letters->peek());
        self::assertTrue($letters->edit($ids[0], '{"id":"1","name":"good","email":""}'));
        self::assertSame(1, $letters->retry(new DeadLetterFilter(id: $ids[0])));
        self::assertSame(1, $letters->delete(new DeadLetterFilter(id: $ids[1])));
        self::assertSame(1, $bus->consume(self::QUEUE, options: new ConsumeOptions(stopWhenEmpty: true)));
        self::assertSame(['1'], \array_slice($handled, 5));
        self::assertSame(1, $letters->retry());
        self::assertSame(1, $bus->queue(self::QUEUE)->purge());
        self::assertSame([0, 0], [$bus->queue(self::QUEUE)->depth(), $letters->count()]);
        $bus->close();
    }
}
