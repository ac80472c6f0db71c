<?php

declare(strict_types=1);

namespace Weft\Tests\Bus\Codec;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Bus\Internal\Codec\Codec;
use Weft\Bus\InvalidMessageClassError;
use Weft\Bus\MessageDecodingException;
use Weft\Bus\MessageEncodingException;
use Weft\Internal\Codec\DateTime;
use Weft\Internal\Codec\MismatchException;
use Weft\Tests\Bus\Fixtures\Cloned;
use Weft\Tests\Bus\Fixtures\Currency;
use Weft\Tests\Bus\Fixtures\CustomerStored;
use Weft\Tests\Bus\Fixtures\Dated;
use Weft\Tests\Bus\Fixtures\Document;
use Weft\Tests\Bus\Fixtures\ForgetCustomer;
use Weft\Tests\Bus\Fixtures\Item;
use Weft\Tests\Bus\Fixtures\Measured;
use Weft\Tests\Bus\Fixtures\Nothing;
use Weft\Tests\Bus\Fixtures\Order;
use Weft\Tests\Bus\Fixtures\Pure;
use Weft\Tests\Bus\Fixtures\StoreCustomer;

require_once __DIR__ . '/../Fixtures/messages.php';

final class CodecTest extends TestCase
{
    private Codec $codec;

    protected function setUp(): void
    {
        $this->codec = new Codec();
    }

    public function testAPlainMessageCrossesAsTheJsonOneWouldWriteByHand(): void
    {
        $body = $this->codec->of(StoreCustomer::class)->encode(new StoreCustomer('7', 'Zoë / "Z"', 'z@example.org'));

        self::assertSame('{"id":"7","name":"Zoë / \"Z\"","email":"z@example.org"}', $body);
    }

    public function testEverythingAMessageMayHoldSurvivesBothWays(): void
    {
        $order = Order::place(\PHP_INT_MAX, new Item('a', 2.0, ['colour' => 'red']), new Item('b', 0.1))->comesFrom('web');
        $order->grid = [[1, 2], [], [3]];
        $order->shelf = [7 => new Item('c', -1.5), 9 => null];
        $order->extra = ['a' => [1, 'x', null, 2.5, true], 'b' => []];
        $order->replaces = Order::place(\PHP_INT_MIN);

        $decoded = $this->roundTrip($order);

        self::assertEquals($order, $decoded);
        self::assertSame('web', $decoded->origin());
        self::assertSame(Currency::Euro, $decoded->currency());
        self::assertSame('2026-03-04T05:06:07.000089+02:00', $decoded->placedAt->format('Y-m-d\TH:i:s.uP'));
    }

    public function testEncodingLeavesTheMessageAsItIsEvenWhereItHoldsReferences(): void
    {
        $items = [new Item('a', 2.0), new Item('b', 0.1)];
        foreach ($items as &$item) {
            // The last element is a reference from here on.
        }
        $order = Order::place(1, ...[]);
        $order->shelf = [7 => &$items[0], 9 => &$items[1]];
        $context = ['a' => ['b' => 1.5]];
        $order->extra = ['a' => &$context];
        $class = $this->codec->of(Order::class);

        self::assertSame($class->encode($order), $class->encode($order));
        self::assertSame($item, $order->shelf[9]);
    }

    public function testAnArrayThatContainsItselfIsRefused(): void
    {
        $endless = [];
        $endless['a'] = &$endless;

        $this->expectException(MessageEncodingException::class);
        $this->expectExceptionMessage('nested at most 512 deep');
        $this->codec->of(Measured::class)->encode(new Measured(1.0, $endless));
    }

    public function testNoConstructorRunsWhenDecoding(): void
    {
        $body = $this->codec->of(Order::class)->encode(Order::place(1));
        $made = Order::$made;

        $this->codec->of(Order::class)->decode($body);

        self::assertSame($made, Order::$made);
    }

    public function testMissingFieldsTakeTheDefaultsOfPropertyAndPromotedParameter(): void
    {
        $order = $this->codec->of(Order::class)->decode(
            '{"number":1,"currency":"USD","priority":null,"items":[],"placedAt":"2026-01-01T00:00:00Z","deadlines":[]}',
        );

        self::assertSame([false, 1, null, 'unknown'], [$order->gift, $order->revision, $order->replaces, $order->origin()]);
        self::assertEquals(new \DateTimeImmutable('2020-01-01T00:00:00Z'), $order->paidAt);
    }

    public function testATimeIsReadInEveryFormOfRfc3339(): void
    {
        $read = static fn(string $text): string => (new DateTime())->decode($text)->format('Y-m-d H:i:s.u P');

        self::assertSame('2026-02-03 04:05:06.123456 +02:00', $read('2026-02-03T04:05:06.123456789+02:00'));
        self::assertSame('2026-02-03 04:05:06.999999 +00:00', $read('2026-02-03T04:05:06.9999999Z'));
        self::assertSame('2026-02-03 04:05:06.500000 +00:00', $read('2026-02-03t04:05:06.5z'));
        self::assertSame('2026-02-03 04:05:06.000000 -00:30', $read('2026-02-03T04:05:06-00:30'));
        self::assertSame('2017-01-01 00:00:00.250000 +00:00', $read('2016-12-31T23:59:60.25Z'), 'a leap second is the next one');
        self::assertSame('2017-01-01 05:30:00.000000 +05:30', $read('2017-01-01T05:29:60+05:30'));
        foreach (['2026-02-30T00:00:00Z', '2026-02-03T24:00:00Z', '2026-02-03T12:00:60Z', '2026-02-03T12:60:00Z', '2026-02-03T04:05:06.Z', '2026-02-03 04:05:06Z', '2026-02-03T04:05:06', '2026-02-03T04:05:06+25:00', '2026-02-03T04:05:06-24:00', '2026-02-03T04:05:06+02:60'] as $text) {
            try {
                $read($text);
                self::fail("$text was read");
            } catch (MismatchException $mismatch) {
                self::assertStringContainsString('expected ISO 8601 date-time with offset', $mismatch->problem);
            }
        }
    }

    public function testUnknownFieldsAreIgnored(): void
    {
        $stored = $this->codec->of(CustomerStored::class)->decode('{"x":{"y":[1]},"id":"7","0":1}');

        self::assertEquals(new CustomerStored('7'), $stored);
    }

    public function testAnIntWidensToFloatAndAFloatStaysOneWithoutFraction(): void
    {
        $measured = $this->codec->of(Measured::class);

        self::assertSame(3.0, $measured->decode('{"value":3}')->value);
        self::assertSame('{"value":3.0,"context":null}', $measured->encode(new Measured(3.0)));
    }

    public function testEmptyMessagesAndMapsAreObjectsAndEmptyListsLists(): void
    {
        self::assertSame('{}', $this->codec->of(Nothing::class)->encode(new Nothing()));
        self::assertEquals(new Nothing(), $this->codec->of(Nothing::class)->decode('{}'));
        self::assertStringContainsString('"labels":{}', $this->codec->of(Item::class)->encode(new Item('a', 1.0)));
        self::assertStringContainsString('"items":[]', $this->codec->of(Order::class)->encode(Order::place(1)));
    }

    public function testAClassThatCountsItsClonesIsNotCloned(): void
    {
        self::assertSame(0, $this->roundTrip(new Cloned('x'))->clones);
    }

    public function testAMessageTravelsUnderItsClassOrTheNameItChose(): void
    {
        self::assertSame([StoreCustomer::class, 1], [$this->codec->of(StoreCustomer::class)->type, $this->codec->of(StoreCustomer::class)->version]);
        self::assertSame(['customer.forget', 3], [$this->codec->of(ForgetCustomer::class)->type, $this->codec->of(ForgetCustomer::class)->version]);
        self::assertSame(ForgetCustomer::class, $this->codec->ofType('customer.forget')?->class);
    }

    public function testATypeThatNobodyNamedInTheProgramIsNeverLoaded(): void
    {
        self::assertNull($this->codec->ofType(CustomerStored::class));
    }

    /** @dataProvider undecodable */
    #[DataProvider('undecodable')]
    public function testDecodingRefusesAValueThatDoesNotFitWithItsPathAndTypes(string $class, string $body, string $path, string $problem): void
    {
        try {
            $this->codec->of($class)->decode($body);
            self::fail('decoded');
        } catch (MessageDecodingException $failed) {
            self::assertSame([$class, $path], [$failed->class, $failed->path]);
            self::assertStringContainsString($problem, $failed->getMessage());
            self::assertStringContainsString($class, $failed->getMessage());
            self::assertStringNotContainsString('secret', $failed->getMessage());
        }
    }

    public static function undecodable(): iterable
    {
        $order = static fn(string $field, string $value): string => (string) \json_encode([$field => \json_decode($value)] + [
            'number' => 1, 'currency' => 'EUR', 'priority' => 1, 'items' => [], 'placedAt' => '2026-01-01T00:00:00Z', 'deadlines' => [],
        ]);

        yield 'no JSON' => [StoreCustomer::class, '{"id":"secret"', '$', 'the body is not JSON: Syntax error'];
        yield 'empty body' => [StoreCustomer::class, '', '$', 'not JSON'];
        yield 'bytes' => [StoreCustomer::class, "{\"id\":\"\xff\"}", '$', 'Malformed UTF-8'];
        yield 'too deep' => [StoreCustomer::class, \str_repeat('[', 600), '$', 'Maximum stack depth'];
        yield 'null' => [StoreCustomer::class, 'null', '$', 'expected object, found null'];
        yield 'a string' => [StoreCustomer::class, '"secret"', '$', 'expected object, found string'];
        yield 'a list' => [StoreCustomer::class, '["secret"]', '$', 'expected object, found list'];
        yield 'missing field' => [StoreCustomer::class, '{"id":"7","name":"secret"}', '$.email', 'expected string, found nothing (the field is missing)'];
        yield 'nothing at all' => [StoreCustomer::class, '{}', '$.id', 'missing'];
        yield 'null for a string' => [StoreCustomer::class, '{"id":null,"name":"secret","email":"e"}', '$.id', 'expected string, found null'];
        yield 'int for a string' => [StoreCustomer::class, '{"id":"a","name":7,"email":"e"}', '$.name', 'expected string, found int'];
        yield 'object for a string' => [StoreCustomer::class, '{"id":{"a":"secret"},"name":"n","email":"e"}', '$.id', 'expected string, found object'];
        yield 'string for an int' => [Order::class, $order('number', '"secret"'), '$.number', 'expected int, found string'];
        yield 'float for an int' => [Order::class, $order('number', '1.5'), '$.number', 'expected int, found float'];
        yield 'int beyond int64' => [Order::class, \str_replace('"number":1', '"number":9223372036854775808', $order('gift', 'true')), '$.number', 'found a number out of the range of int64'];
        yield 'int for a bool' => [Order::class, $order('gift', '1'), '$.gift', 'expected bool, found int'];
        yield 'unknown enum value' => [Order::class, $order('currency', '"secret"'), '$.currency', 'found a string that is not one of its cases'];
        yield 'wrong enum type' => [Order::class, $order('priority', '"1"'), '$.priority', 'found string'];
        yield 'date of another form' => [Order::class, $order('placedAt', '"secret 2026-01-01"'), '$.placedAt', 'ISO 8601'];
        yield 'date that does not exist' => [Order::class, $order('placedAt', '"2026-02-30T00:00:00Z"'), '$.placedAt', 'does not exist'];
        yield 'date in a list' => [Order::class, $order('deadlines', '["2026-01-01T00:00:00.5Z", 3]'), '$.deadlines[1]', 'found int'];
        yield 'object for a list' => [Order::class, $order('items', '{"secret":1}'), '$.items', 'expected list of object'];
        yield 'deep inside' => [Order::class, $order('items', '[{"sku":"a","price":1},{"sku":"b","price":1},{"sku":"c","price":"secret"}]'), '$.items[2].price', 'expected float, found string'];
        yield 'key of a map' => [Order::class, $order('items', '[{"sku":"a","price":1,"labels":{"secret":1}}]'), '$.items[0].labels[*]', 'expected string, found int'];
        yield 'string key of an int map' => [Order::class, $order('shelf', '{"secret":null}'), '$.shelf[*]', 'int keys'];
        yield 'list in a list' => [Order::class, $order('grid', '[[1],[2,"secret"]]'), '$.grid[1][1]', 'expected int'];
        yield 'inside itself' => [Order::class, $order('replaces', '{"number":1}'), '$.replaces.currency', 'missing'];
        yield 'a float beyond its range' => [Measured::class, '{"value":1e999}', '$.value', 'out of range'];
    }

    /** @dataProvider unencodable */
    #[DataProvider('unencodable')]
    public function testEncodingRefusesAValueThatJsonCannotCarryWithItsPath(object $message, string $path, string $problem): void
    {
        try {
            $this->codec->of($message::class)->encode($message);
            self::fail('encoded');
        } catch (MessageEncodingException $failed) {
            self::assertSame([$message::class, $path], [$failed->class, $failed->path]);
            self::assertStringContainsString($problem, $failed->getMessage());
            self::assertStringNotContainsString('secret', $failed->getMessage());
        }
    }

    public static function unencodable(): iterable
    {
        $order = static function (string $property, mixed $value): Order {
            $order = Order::place(1, new Item('a', 1.0));
            $order->$property = $value;

            return $order;
        };
        $cycle = Order::place(1);
        $cycle->replaces = $cycle;
        $half = (new \ReflectionClass(StoreCustomer::class))->newInstanceWithoutConstructor();

        yield 'NAN' => [new Measured(\NAN), '$.value', 'found NAN'];
        yield 'INF' => [new Measured(-\INF), '$.value', 'found INF'];
        yield 'INF in mixed' => [new Measured(1.0, ['a' => [1, \INF]]), '$.context[*][1]', 'INF'];
        yield 'object in mixed' => [new Measured(1.0, [new \stdClass()]), '$.context[0]', 'stdClass'];
        yield 'bytes' => [new StoreCustomer('1', "secret \xff", ''), '$.name', 'UTF-8'];
        yield 'bytes deep inside' => [Order::place(1, new Item("secret \xff", 1.0)), '$.items[0].sku', 'UTF-8'];
        yield 'NUL at the start of a map key' => [Order::place(1, new Item('a', 1.0, ["\0secret" => 'b'])), '$.items[0].labels[*]', 'a key that does not begin with NUL'];
        yield 'bytes as a map key' => [Order::place(1, new Item('a', 1.0, ["secret \xff" => 'b'])), '$.items[0].labels[*]', 'UTF-8'];
        yield 'a list that is none' => [$order('grid', [1 => []]), '$.grid', 'expected list'];
        yield 'a wrong item' => [$order('grid', [['secret']]), '$.grid[0][0]', 'expected int, found string'];
        yield 'another class' => [$order('shelf', [3 => new CustomerStored('secret')]), '$.shelf[3]', 'found Weft\Tests\Bus\Fixtures\CustomerStored'];
        yield 'an offset with seconds' => [new Dated(new \DateTimeImmutable('1890-06-01 12:00:00', new \DateTimeZone('Europe/Berlin'))), '$.at', 'an offset of whole minutes'];
        yield 'never set' => [$half, '$', 'must not be accessed before initialization'];
        yield 'a cycle' => [$cycle, '$' . \str_repeat('.replaces', 11) . '…' . \str_repeat('.replaces', 11), 'a cycle?'];
    }

    /** @dataProvider notMessages */
    #[DataProvider('notMessages')]
    public function testAClassThatJsonCannotCarryIsRefusedWhenItIsRegistered(object|string $class, string $problem): void
    {
        $this->expectException(InvalidMessageClassError::class);
        $this->expectExceptionMessageMatches('~' . \preg_quote($problem, '~') . '~');

        $this->codec->of(\is_object($class) ? $class::class : $class);
    }

    public static function notMessages(): iterable
    {
        yield 'no class' => ['Missing\Thing', 'the class does not exist'];
        yield 'interface' => [\Countable::class, 'interface'];
        yield 'abstract' => [Document::class, 'abstract'];
        yield 'enum' => [Currency::class, 'enum'];
        yield 'of PHP' => [\ArrayObject::class, 'internal class of PHP'];
        yield 'anonymous' => [new class {}, 'anonymous'];
        foreach (
            [
            'Untyped' => ['public $value;', 'property $value has no type'],
            'Union' => ['public int|string $value;', 'has the type string|int; of union types only ?T'],
            'MisspeltType' => ['public Itemm $value;', 'property $value contains Weft\Tests\Bus\Codec\Declared\Itemm, a class that does not exist'],
            'PlainArray' => ['public array $value;', 'property $value is a plain array; declare its elements'],
            'VagueArray' => ['/** @var array<Item> */ public array $value;', 'documented as array<Item>'],
            'ArrayOfArrays' => ['/** @var list<array> */ public array $value;', 'plain array'],
            'HoldsClosure' => ['public \Closure $value;', 'has the type Closure'],
            'HoldsObject' => ['public object $value;', 'has the type object'],
            'HoldsPureEnum' => ['public \\' . Pure::class . ' $value;', 'which is not backed'],
            'HoldsMutableDate' => ['public \DateTime $value;', 'mutable DateTime'],
            'HoldsInternal' => ['public \ArrayObject $value;', 'internal class of PHP'],
            'HoldsAbstract' => ['/** @var list<\\' . Document::class . '> */ public array $value;', 'abstract'],
            'HoldsMissing' => ['/** @var list<Missing> */ public array $value;', 'Weft\Tests\Bus\Codec\Declared\Missing'],
            'Misspelt' => ['#[Encripted] public string $value;', 'property $value is marked with #[Weft\Tests\Bus\Codec\Declared\Encripted], which is not a class. Is #[Weft\Bus\Encrypted] meant'],
            'MisspeltOfHttp' => ['#[Qeury] public string $value;', 'property $value is marked with #[Weft\Tests\Bus\Codec\Declared\Qeury], which is not a class. Check the spelling'],
            'MisspeltOfClasses' => ['#[OrderBy] public string $value;', 'property $value is marked with #[Weft\Tests\Bus\Codec\Declared\OrderBy], which is not a class. Check the spelling'],
            'Destructed' => ['public function __destruct() {}', 'destructor'],
            'ExtendsInternal' => ['public string $value;', 'extends ArrayObject, an internal class of PHP', 'extends \ArrayObject'],
            'Shadow' => ['private string $origin;', 'property $origin is private in ' . Document::class . ' and declared again', 'extends \\' . Document::class],
            ] as $name => $case
        ) {
            eval('namespace Weft\Tests\Bus\Codec\Declared; final class ' . $name . ' ' . ($case[2] ?? '') . " { {$case[0]} }");
            yield $name => ["Weft\\Tests\\Bus\\Codec\\Declared\\{$name}", $case[1]];
        }
    }

    public function testAClassWithAMisspeltAttributeIsRefused(): void
    {
        eval('namespace Weft\Tests\Bus\Codec\Declared; #[OrderBy("id")] final class OutOfOrder { public string $id; }');

        $this->expectException(InvalidMessageClassError::class);
        $this->expectExceptionMessage('it is marked with #[Weft\Tests\Bus\Codec\Declared\OrderBy], which is not a class. Is #[Weft\Bus\OrderedBy] meant');

        $this->codec->of('Weft\Tests\Bus\Codec\Declared\OutOfOrder');
    }

    /** Ignored, an attribute of an older version of Weft would change the messages without a word. */
    public function testAClassWithAnAttributeThatTheBusDoesNotHaveIsRefused(): void
    {
        eval('namespace Weft\Tests\Bus\Codec\Declared; #[\Weft\Bus\Version(2)] final class Outdated {}');

        $this->expectException(InvalidMessageClassError::class);
        $this->expectExceptionMessage('it is marked with #[Weft\Bus\Version], which is not a class. Check the spelling and the use statements');

        $this->codec->of('Weft\Tests\Bus\Codec\Declared\Outdated');
    }

    public function testTwoClassesCannotHaveOneTypeName(): void
    {
        eval('namespace Weft\Tests\Bus\Codec\Declared; #[\Weft\Bus\MessageType("customer.forget")] final class Rival {}');
        $this->codec->of(ForgetCustomer::class);

        $this->expectException(InvalidMessageClassError::class);
        $this->expectExceptionMessage('"customer.forget" is used by ' . ForgetCustomer::class);

        $this->codec->of('Weft\Tests\Bus\Codec\Declared\Rival');
    }

    private function roundTrip(object $message): object
    {
        $class = $this->codec->of($message::class);

        return $class->decode($class->encode($message));
    }
}
