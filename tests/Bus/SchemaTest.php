<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Bus\Bus;
use Weft\Bus\BusOptions;
use Weft\Bus\Context;
use Weft\Bus\EventListener;
use Weft\Bus\Header;
use Weft\Bus\InvalidUpcasterException;
use Weft\Bus\MessageDecodingException;
use Weft\Bus\MessageOptions;
use Weft\Bus\MessageType;
use Weft\Bus\SchemaChange;
use Weft\Bus\Transport\Memory;
use Weft\Bus\Transport\Outgoing;
use Weft\Bus\Upcaster;
use Weft\Sql\Database;
use Weft\Tests\Bus\Fixtures\Order;
use Weft\Tests\Bus\Fixtures\StoreCustomer;
use Weft\Tests\Bus\Fixtures\TemporaryDatabase;
use Weft\Tests\Cli\Weft;
use Weft\Tests\Execution;

require_once __DIR__ . '/Fixtures/messages.php';

final class SchemaTest extends BusTestCase
{
    use TemporaryDatabase;

    public function testMessagesOfOlderVersionsAreBroughtToThePresentOneStepByStep(): void
    {
        $this->inRuntime(function (): void {
            $seen = [];
            $broker = new Memory();
            $bus = $this->moved($broker, $seen)->handlers(new Moves());
            $bus->queue(self::QUEUE)->declare();
            foreach ([null, '1', '2', '3'] as $version) {
                $body = match ($version) {
                    null, '1' => '{"id":"7","address":"Main Street 1, Riga"}',
                    '2' => '{"id":"7","street":"Main Street 1","town":"Riga"}',
                    default => '{"id":"7","street":"Main Street 1","city":"Riga"}',
                };
                $broker->publish([new Outgoing('customer.moved', $body, $version === null ? [] : [Header::SCHEMA_VERSION => $version])]);
            }
            self::drain($bus);

            self::assertSame(\array_fill(0, 4, '7 Main Street 1 Riga'), $seen);
        });
    }

    public function testADeadLetterKeepsItsBytesAndIsUpcastWhenItIsRequeued(): void
    {
        $this->inRuntime(function (): void {
            $seen = [];
            $broker = new Memory();
            $old = '{"id":"7","street":"Main Street 1","town":"Riga"}';
            $bus = $this->moved($broker, $seen);
            $bus->queue(self::QUEUE)->declare();
            $broker->publish([new Outgoing('customer.moved', $old, [Header::SCHEMA_VERSION => '2', Header::MESSAGE_ID => 'x'])]);
            self::drain($bus);
            [$letter] = $bus->queue(self::QUEUE)->deadLetters()->peek();
            self::assertSame([$old, '2', MessageDecodingException::class], [$letter->body, $letter->headers[Header::SCHEMA_VERSION], $letter->errorClass()]);

            $bus->handlers(new Moves());
            $bus->queue(self::QUEUE)->deadLetters()->retry();
            self::drain($bus);
            self::assertSame(['7 Main Street 1 Riga'], $seen);
        });
    }

    /** @dataProvider broken */
    #[DataProvider('broken')]
    public function testAVersionThatCannotBeReadDeadLettersTheMessageWithItsBytes(string $version, string $body, string $error): void
    {
        $this->inRuntime(function () use ($version, $body, $error): void {
            $seen = [];
            $broker = new Memory();
            $bus = $this->moved($broker, $seen)->handlers(new Moves());
            $bus->queue(self::QUEUE)->declare();
            $broker->publish([new Outgoing('customer.moved', $body, [Header::SCHEMA_VERSION => $version])]);
            self::drain($bus);

            [$letter] = $bus->queue(self::QUEUE)->deadLetters()->peek();
            self::assertSame([$body, MessageDecodingException::class, []], [$letter->body, $letter->errorClass(), $seen]);
            self::assertStringContainsString($error, $letter->errorMessage());
        });
    }

    /** @return iterable<string, array{string, string, string}> */
    public static function broken(): iterable
    {
        yield 'from the future' => ['4', '{}', 'schema version 4 is newer than 3'];
        yield 'no number' => ['two', '{}', 'the schema version "two" is not a number'];
        yield 'zero' => ['0', '{}', 'the schema version "0" is not a number'];
        yield 'an upcaster that throws' => ['1', '{"id":"7"}', 'schema version 1 could not be upcast to the next: Undefined array key "address"'];
        yield 'not JSON' => ['1', '{', 'the body is not JSON'];
        yield 'no object' => ['1', '[1]', 'expected object, found list'];
    }

    public function testAnUpcasterThatCannotBeOneIsRefusedByName(): void
    {
        $refused = [];
        foreach (
            [
            new class {
                #[Upcaster(CustomerMoved::class, from: 3)]
                public function up(array $data): array
                {
                    return $data;
                }
            },
            new class {
                #[Upcaster(CustomerMoved::class, from: 1)]
                public function up(string $data): array
                {
                    return [];
                }
            },
            new class {
                #[Upcaster(CustomerMoved::class, from: 1)]
                private function up(array $data): array
                {
                    return $data;
                }
            },
            ] as $service
        ) {
            try {
                Bus::connect('memory:')->handlers($service);
            } catch (InvalidUpcasterException $invalid) {
                $refused[] = \preg_replace('/^.*?(?=::up)/s', '', $invalid->getMessage());
            }
        }
        self::assertSame([
            '::up() takes version 3 of ' . CustomerMoved::class . ', which is at version 3',
            '::up() must take the body as its one parameter, an array',
            '::up() must be public and not static',
        ], $refused);
        $this->expectException(InvalidUpcasterException::class);
        $this->expectExceptionMessage('takes version 1 of ' . CustomerMoved::class . ', for which an upcaster is already registered');
        Bus::connect('memory:')->handlers(new Moves(), new Moves());
    }

    public function testTheVersionOfAClassTravelsWithItsMessages(): void
    {
        $this->inRuntime(function (): void {
            $version = null;
            $bus = Bus::connect('memory:')->handlers(new class ($version) {
                public function __construct(private ?string &$version) {}

                #[EventListener]
                public function seen(Versioned $event, Context $context): void
                {
                    $this->version = $context->header(Header::SCHEMA_VERSION);
                }
            });
            $bus->queue(self::QUEUE)->declare();
            $bus->publish(new Versioned());
            self::drain($bus);
            self::assertSame('2', $version);
        });
    }

    public function testTheSameClassesAreNoChangeAndALockIsReadBackAsItWasWritten(): void
    {
        $bus = Bus::connect('memory:', options: new BusOptions(messages: new MessageOptions(classes: [Order::class, StoreCustomer::class, CustomerMoved::class])))->handlers(new Moves());
        $first = $bus->admin()->compareSchema(null);
        $again = $bus->admin()->compareSchema($first->lock);

        self::assertSame([[], [], $first->lock], [$again->breaking, $again->compatible, $again->lock]);
        self::assertStringContainsString('"upcasts": [', $first->lock);
    }

    /** @dataProvider changes */
    #[DataProvider('changes')]
    public function testAChangeIsCompatibleOrNot(array $from, array $to, array $breaking, array $compatible): void
    {
        $change = self::change($from, $to);

        self::assertSame([$breaking, $compatible], [$change->breaking, $change->compatible]);
    }

    /** @return iterable<string, array{array<string, mixed>, array<string, mixed>, list<string>, list<string>}> */
    public static function changes(): iterable
    {
        $message = static fn(array $fields, int $version = 1, array $upcasts = []): array => ['customer.moved' => [
            'class' => 'Any', 'version' => $version, 'upcasts' => $upcasts, 'fields' => $fields,
        ]];
        $field = static fn(mixed $type, bool $optional = false): array => ['type' => $type, 'optional' => $optional];
        $now = ['id' => $field('string'), 'street' => $field('string'), 'city' => $field('string')];

        yield 'a field removed' => [$message($now + ['zip' => $field('int')], 3, [1, 2]), [], ['customer.moved: $.zip (int) was removed'], []];
        yield 'a field of another type' => [$message(['city' => $field('int')] + $now, 3, [1, 2]), [], ['customer.moved: $.city was int and is string'], []];
        yield 'a field that may no longer be null' => [$message(['city' => $field(['nullable' => 'string'])] + $now, 3, [1, 2]), [], ['customer.moved: $.city was ?string and is string'], []];
        yield 'a field that must be there now' => [$message(\array_diff_key($now, ['city' => 1]), 3, [1, 2]), [], ['customer.moved: $.city (string) was added and has no default'], []];
        yield 'a new version with an upcaster' => [
            $message(['id' => $field('string'), 'street' => $field('string'), 'town' => $field('string')], 2, [1]), [], [],
            ['customer.moved: $.town (string) was removed', 'customer.moved: $.city (string) was added and has no default', 'customer.moved: version 2 was changed to 3'],
        ];
        yield 'an older lock, without the upcasters' => [
            $message(['id' => $field('string'), 'address' => $field('string')], 1), ['upcasters' => false],
            ['customer.moved: $.address (string) was removed; $.city (string) was added and has no default; $.street (string) was added and has no default; no upcaster takes version 1 and 2'], [],
        ];
        yield 'an upcaster that was removed' => [$message($now, 3, [1, 2]), ['upcasters' => false], ['customer.moved: the upcaster from version 1 and 2 was removed'], []];
        yield 'a version that went down' => [$message($now, 4, [1, 2, 3]), [], ['customer.moved: version 4 was changed to 3', 'customer.moved: the upcaster from version 3 was removed'], []];
        yield 'a message that was removed' => [$message($now, 3, [1, 2]) + ['customer.left' => ['class' => 'Left', 'version' => 1, 'upcasts' => [], 'fields' => []]], [], ['customer.left: was removed; messages of this type may be in flight'], []];
        yield 'a message that was added' => [[], [], [], ['customer.moved: was added']];
    }

    public function testFieldsInsideOfObjectsListsAndMapsAreComparedToo(): void
    {
        $bus = Bus::connect('memory:', options: new BusOptions(messages: new MessageOptions(classes: [Order::class])));
        $lock = \json_decode($bus->admin()->compareSchema(null)->lock, true);
        $fields = &$lock['messages'][Order::class]['fields'];
        $fields['items']['type']['list']['object']['colour'] = ['type' => 'string', 'optional' => true];
        $fields['currency']['type']['enum'] = ['EUR'];
        $fields['shelf']['type']['map']['nullable']['object']['price']['type'] = 'int';
        // As in a lock of Weft 0.1.
        $fields['shelf']['type']['map'] = ['nullable' => $fields['shelf']['type']['map']];
        $fields['grid']['type']['list']['list'] = 'string';
        $change = $bus->admin()->compareSchema(\json_encode($lock));

        self::assertEqualsCanonicalizing([
            Order::class . ': $.items[*].colour (string) was removed',
            Order::class . ': $.shelf[*].price was int and is float',
            Order::class . ': $.grid[*][*] was string and is int',
        ], $change->breaking);
        self::assertSame([Order::class . ': $.currency may also be USD'], $change->compatible);
    }

    public function testTheCommandFailsOnAnIncompatibleChangeAndSaysWhat(): void
    {
        $lock = "{$this->directory}/weft-schema.json";
        \putenv("WEFT_TEST_FILE={$this->directory}/cli.db");
        $check = static fn(string ...$more): Execution => Weft::run(['schema:check', \dirname(__DIR__) . '/Cli/Fixtures/bus.php', "--lock={$lock}", ...$more]);
        try {
            $missing = $check();
            self::assertSame(2, $missing->exitCode);
            self::assertMatchesRegularExpression('/There is no lock file .+ Write it\s+with --update/s', $missing->errors);
            self::assertSame("{$lock} written\n", $check('--update')->output);
            $same = $check();
            self::assertSame([0, "nothing has changed\n"], [$same->exitCode, $same->output]);

            $type = \trim(\json_encode(StoreCustomer::class), '"');
            \file_put_contents($lock, \str_replace('"name": {', '"fullName": {', (string) \file_get_contents($lock)));
            $changed = $check();
            self::assertSame(1, $changed->exitCode);
            $name = StoreCustomer::class;
            self::assertSame("incompatible  {$name}: \$.fullName (string) was removed\nincompatible  {$name}: \$.name (string) was added and has no default\n2 incompatible changes\n", $changed->output, $type);
            \file_put_contents($lock, '{}');
            self::assertStringContainsString('it was not written by', $check()->errors);
        } finally {
            \putenv('WEFT_TEST_FILE');
        }
    }

    /**
     * @param array<string, mixed> $from messages of the lock
     * @param array<string, mixed> $to   whether there are upcasters
     */
    private static function change(array $from, array $to): SchemaChange
    {
        $bus = Bus::connect('memory:', options: new BusOptions(messages: new MessageOptions(classes: [CustomerMoved::class])));
        ($to['upcasters'] ?? true) && $bus->handlers(new Moves());

        return $bus->admin()->compareSchema(\json_encode(['weft-schema' => 1, 'messages' => $from]));
    }

    /** @param list<string> $seen */
    private function moved(Memory $broker, array &$seen): Bus
    {
        return Bus::connect($broker, Database::connect($this->dsn()))->handlers(new class ($seen) {
            public function __construct(private array &$seen) {}

            #[EventListener]
            public function moved(CustomerMoved $event): void
            {
                $this->seen[] = "{$event->id} {$event->street} {$event->city}";
            }
        });
    }
}

#[MessageType('customer.moved', version: 3)]
final class CustomerMoved
{
    public function __construct(
        public readonly string $id,
        public readonly string $street,
        public readonly string $city,
    ) {}
}

final class Moves
{
    #[Upcaster(CustomerMoved::class, from: 1)]
    public function splitAddress(array $data): array
    {
        [$street, $town] = \explode(', ', $data['address'] ?? throw new \OutOfBoundsException('Undefined array key "address"'));

        return ['id' => $data['id'], 'street' => $street, 'town' => $town];
    }

    #[Upcaster(CustomerMoved::class, from: 2)]
    public function renameTown(array $data): array
    {
        return \array_diff_key($data, ['town' => 1]) + ['city' => $data['town']];
    }
}

#[MessageType(Versioned::class, version: 2)]
final class Versioned {}
