<?php

declare(strict_types=1);

namespace Weft\Tests\Protobuf;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Protobuf\Codec;
use Weft\Protobuf\DecodingException;
use Weft\Protobuf\EncodingException;
use Weft\Protobuf\InvalidSchemaException;
use Weft\Protobuf\Json;
use Weft\Protobuf\Message;
use Weft\Protobuf\PreciseTime;
use Weft\Protobuf\WellKnown\Any;
use Weft\Protobuf\WellKnown\Duration;
use Weft\Protobuf\WellKnown\NullValue;
use Weft\Tests\Protobuf\Generated\Api\User;
use Weft\Tests\Protobuf\Generated\Everything\Everything;
use Weft\Tests\Protobuf\Generated\Everything\Everything\Colour;
use Weft\Tests\Protobuf\Generated\Legacy\Legacy;
use Weft\Tests\Protobuf\Generated\Legacy\Level;

final class CodecTest extends TestCase
{
    public function testANewObjectAndADecodedOneAreEqual(): void
    {
        self::assertEquals(new Everything, Codec::decode(Everything::class, ''));
        self::assertSame('', Codec::encode(new Everything));
    }

    public function testFieldsOfEveryKindComeBack(): void
    {
        $message = new Everything(
            double: -0.0,
            float: 1.5,
            int32: -1,
            int64: PHP_INT_MIN,
            uint32: 4294967295,
            uint64: -1,
            sint32: -2147483648,
            sint64: PHP_INT_MIN,
            bool: true,
            string: 'zwölf',
            bytes: "\xFF\0",
            colour: Colour::BLUE,
            child: new Everything(int32: 7),
            numbers: [1, -1, 300],
            texts: ['', 'x', 'text'],
            children: [new Everything, new Everything(bool: true)],
            colours: [Colour::RED, 99],
            byName: ['a' => 1, '7' => 2, '07' => 3],
            byNumber: [-5 => 'five'],
            byTruth: [1 => new Everything(int32: 1)],
            chosenText: '',
            maybeNumber: 0,
            at: new \DateTimeImmutable('1969-12-31T23:59:59.5Z'),
            lasting: new Duration(1, 1),
            structure: ['a' => [1.5, null, true], 'b' => []],
            value: NullValue::NULL_VALUE,
            list: ['x', null],
            wrappedNumber: 0,
            wrappedText: '',
            this_: 4,
        );
        $back = Codec::decode(Everything::class, Codec::encode($message));

        self::assertEquals($message, $back);
        self::assertSame(Colour::BLUE, $back->colour);
        self::assertSame('chosenText', $back->choiceCase());
        self::assertSame(['a', 7, '07'], array_keys($back->byName));
        self::assertSame(99, $back->colours[1]);
    }

    public function testTheLastMemberOfAOneofThatArrivesIsTheOneThatIsSet(): void
    {
        $bytes = Codec::encode(new Everything(chosenText: 'x')) . Codec::encode(new Everything(chosenNumber: 5));
        $message = Codec::decode(Everything::class, $bytes);

        self::assertSame(['chosenNumber', null, 5], [$message->choiceCase(), $message->chosenText, $message->chosenNumber]);
    }

    public function testTwoMembersOfAOneofAreRefused(): void
    {
        $this->expectException(EncodingException::class);
        $this->expectExceptionMessage('chosen_text and chosen_number are both set, and only one field of the oneof choice can be');
        Codec::encode(new Everything(chosenText: 'x', chosenNumber: 1));
    }

    /** @return iterable<string, array{array<string, mixed>, string}> */
    public static function wrongFields(): iterable
    {
        yield 'a number above 32 bits' => [['int32' => 2 ** 31], 'field int32 (3) holds 2147483648, which is not a signed 32-bit number'];
        yield 'a negative unsigned number' => [['uint32' => -1], 'field uint32 (5) holds -1, which is not an unsigned 32-bit number'];
        yield 'a list with a string' => [['numbers' => [1, 'x']], 'field numbers (20) holds string, expected int'];
        yield 'a list with another message' => [['children' => [new User]], 'field children (22) holds ' . User::class . ', expected ' . Everything::class];
        yield 'a map with a key that is no number' => [['byNumber' => ['x' => 'y']], 'field by_number (31) has the key "x", expected an int'];
        yield 'an enum of another type' => [['colours' => [Level::LOW]], 'field colours (23) holds object, expected ' . Colour::class . ' or int'];
        yield 'a struct with an object' => [['structure' => ['a' => new User]], 'field structure (62) holds an object of ' . User::class];
        yield 'text that is not UTF-8 in a list' => [['texts' => ["\xC3"]], 'field texts (21) is not UTF-8'];
    }

    /**
     * @dataProvider wrongFields
     *
     * @param array<string, mixed> $fields
     */
    #[DataProvider('wrongFields')]
    public function testAValueThatTheFieldCannotHoldIsNamed(array $fields, string $problem): void
    {
        $this->expectException(EncodingException::class);
        $this->expectExceptionMessage($problem);
        Codec::encode(new Everything(...$fields));
    }

    public function testAMessageThatContainsItselfIsRefusedAndTheNextOneIsNot(): void
    {
        $message = new Everything;
        $message->child = $message;
        try {
            Codec::encode($message);
            self::fail('encoded');
        } catch (EncodingException $e) {
            self::assertStringEndsWith('is nested deeper than 100 levels', $e->getMessage());
        }
        self::assertSame("\x18\x01", Codec::encode(new Everything(int32: 1)));
    }

    /**
     * @dataProvider nested
     *
     * @param \Closure(int): Everything $nested
     */
    #[DataProvider('nested')]
    public function testWhatIsEncodedIsDecodedUpToTheSameDepth(\Closure $nested, int $deepest): void
    {
        foreach ([$deepest - 1, $deepest] as $count) {
            $message = $nested($count);
            self::assertEquals($message, Codec::decode(Everything::class, Codec::encode($message)));
            self::assertEquals($message, Json::decode(Everything::class, Json::encode($message)));
        }
        foreach ([Codec::encode(...), Json::encode(...)] as $encode) {
            try {
                $encode($nested($deepest + 1));
                self::fail('encoded');
            } catch (EncodingException $e) {
                self::assertStringEndsWith('is nested deeper than 100 levels', $e->getMessage());
            }
        }
    }

    /** @return iterable<string, array{\Closure(int): Everything, int}> */
    public static function nested(): iterable
    {
        $repeat = static function (int $count, mixed $inner, \Closure $around): mixed {
            while ($count-- > 0) {
                $inner = $around($inner);
            }

            return $inner;
        };
        // The outermost message is the first of 100.
        yield 'messages' => [static fn(int $count): Everything => $repeat($count, new Everything(), static fn(Everything $inner): Everything => new Everything(child: $inner)), 99];
        yield 'lists of messages' => [static fn(int $count): Everything => $repeat($count, new Everything(), static fn(Everything $inner): Everything => new Everything(children: [$inner])), 99];
        yield 'maps' => [static fn(int $count): Everything => $repeat($count, new Everything(), static fn(Everything $inner): Everything => new Everything(byTruth: [1 => $inner])), 49];
        yield 'structs' => [static fn(int $count): Everything => new Everything(structure: $repeat($count, true, static fn(mixed $inner): array => ['a' => $inner])), 33];
        yield 'lists of values' => [static fn(int $count): Everything => new Everything(value: $repeat($count, true, static fn(mixed $inner): array => [$inner])), 49];
        yield 'lists' => [static fn(int $count): Everything => new Everything(list: $repeat($count, true, static fn(mixed $inner): array => [$inner])), 49];
        yield 'a time in messages' => [static fn(int $count): Everything => $repeat($count - 1, new Everything(at: new \DateTimeImmutable('@0')), static fn(Everything $inner): Everything => new Everything(child: $inner)), 99];
        yield 'a number in messages' => [static fn(int $count): Everything => $repeat($count - 1, new Everything(wrappedNumber: 1), static fn(Everything $inner): Everything => new Everything(child: $inner)), 99];
    }

    public function testTheMemoryOfAMessageIsLimited(): void
    {
        $bytes = Codec::encode(new Everything(children: array_fill(0, 1_000, new Everything())));
        $json = '{"children":[' . implode(',', array_fill(0, 1_000, '{}')) . ']}';
        self::assertLessThan(10_000, \strlen($json));
        foreach ([static fn(?int $memory): object => Codec::decode(Everything::class, $bytes, $memory), static fn(?int $memory): object => Json::decode(Everything::class, $json, memory: $memory)] as $decode) {
            self::assertCount(1_000, $decode(null)->children);
            self::assertCount(1_000, $decode(2_000_000)->children);
            try {
                $decode(500_000);
                self::fail('decoded');
            } catch (DecodingException $e) {
                self::assertTrue($e->isTooLarge);
                self::assertStringEndsWith('its values take more than 500000 bytes of memory, which is the limit', $e->getMessage());
            }
        }
        try {
            Codec::decode(Everything::class, "\xff");
            self::fail('decoded');
        } catch (DecodingException $e) {
            self::assertFalse($e->isTooLarge);
        }
    }

    public function testTheEstimateOfMemoryIsCloseToWhatAMessageTakes(): void
    {
        $many = [
            'messages' => new Everything(children: array_fill(0, 2_000, new Everything())),
            'numbers' => new Everything(numbers: range(1, 100_000)),
            'texts' => new Everything(texts: array_fill(0, 20_000, 'some text')),
            'entries' => new Everything(byName: array_combine(array_map(static fn(int $n): string => "key $n", range(1, 20_000)), range(1, 20_000))),
            'values' => new Everything(list: range(1, 20_000)),
        ];
        foreach ($many as $what => $message) {
            $bytes = Codec::encode($message);
            Codec::decode(Everything::class, $bytes);
            $before = memory_get_usage();
            $decoded = Codec::decode(Everything::class, $bytes);
            $taken = memory_get_usage() - $before;
            unset($decoded);
            try {
                Codec::decode(Everything::class, $bytes, intdiv($taken, 3));
                self::fail("$what: $taken bytes are estimated as less than a third");
            } catch (DecodingException $e) {
                self::assertTrue($e->isTooLarge);
            }
            Codec::decode(Everything::class, $bytes, 6 * $taken);
        }
    }

    public function testReferencesToPropertiesAreFollowed(): void
    {
        $message = new Everything(int32: 1, numbers: [1, 2]);
        $number = &$message->int32;
        $numbers = &$message->numbers;
        $number = 5;
        $numbers[] = 3;

        self::assertEquals(new Everything(int32: 5, numbers: [1, 2, 3]), Codec::decode(Everything::class, Codec::encode($message)));
    }

    public function testDecodedValuesAreTheirOwnerAloneAndAreReleased(): void
    {
        $bytes = Codec::encode(new Everything(texts: ['long enough to be counted'], children: [new Everything], child: new Everything));
        $measure = static function () use ($bytes): int {
            for ($i = 0; $i < 500; $i++) {
                Codec::encode(Codec::decode(Everything::class, $bytes . "\xF8\x7F\x01"));
                try {
                    Codec::decode(Everything::class, $bytes . "\xB2\x01\x05\x08");
                } catch (DecodingException) {
                }
            }

            return memory_get_usage();
        };
        $before = $measure();

        self::assertSame($before, $measure());
    }

    public function testTimestampsKeepNanoseconds(): void
    {
        $bytes = Codec::encode(new Everything(at: new PreciseTime('2026-01-01T00:00:00.000001Z', nanoseconds: 7)));
        $at = Codec::decode(Everything::class, $bytes)->at;

        self::assertInstanceOf(PreciseTime::class, $at);
        self::assertSame(['000001', 7], [$at->format('u'), $at->nanoseconds]);
        self::assertSame('{"at":"2026-01-01T00:00:00.000001007Z"}', Json::encode(Codec::decode(Everything::class, $bytes)));
    }

    /** @dataProvider nanosOutOfRange */
    #[DataProvider('nanosOutOfRange')]
    public function testATimestampWithNanosecondsOutOfRangeIsNotDecoded(string $nanos, int $number): void
    {
        $this->expectException(DecodingException::class);
        $this->expectExceptionMessageMatches("/field at \\(60\\) of \\S+: a google\\.protobuf\\.Timestamp has {$number} nanoseconds, expected 0 to 999999999/");
        Codec::decode(Everything::class, "\xE2\x03" . chr(strlen($nanos) + 1) . "\x10$nanos");
    }

    /** @return iterable<string, array{string, int}> */
    public static function nanosOutOfRange(): iterable
    {
        yield 'below zero' => ["\xFB\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", -5];
        yield 'whole microseconds below zero' => ["\x98\xF8\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", -1_000];
        yield 'one second' => ["\x80\x94\xEB\xDC\x03", 1_000_000_000];
        yield 'two seconds' => ["\x80\xA8\xD6\xB9\x07", 2_000_000_000];
    }

    public function testAnAnyIsPackedAndUnpacked(): void
    {
        $any = Codec::decode(Everything::class, Codec::encode(new Everything(any: Any::pack(new User(id: 5)))))->any;

        self::assertEquals(new User(id: 5), $any?->unpack(User::class));
        self::assertNull($any?->unpack(Everything::class));
        self::assertSame('{"any":{"@type":"type.googleapis.com/api.User","id":"5"}}', Json::encode(new Everything(any: $any)));
    }

    public function testJsonNamesThePlaceOfAMistake(): void
    {
        $this->expectException(DecodingException::class);
        $this->expectExceptionMessage('at $.children[1].int32: expected an integer, found a string');
        Json::decode(Everything::class, '{"children":[{},{"int32":"x"}]}');
    }

    public function testUnknownKeysOfJsonAreRefusedUnlessAskedFor(): void
    {
        self::assertEquals(new Everything(int32: 1), Json::decode(Everything::class, '{"new":[],"int32":1}', ignoreUnknown: true));
        $this->expectException(DecodingException::class);
        $this->expectExceptionMessage('everything.Everything has no field "new"');
        Json::decode(Everything::class, '{"new":[]}');
    }

    public function testRequiredFieldsClosedEnumsGroupsAndExtensionsOfProto2(): void
    {
        $bytes = "\x08\x01" . "\x18\x07" . "\x33\x0A\x01x\x34" . "\xA2\x06\x01e";
        $message = Codec::decode(Legacy::class, $bytes);

        self::assertSame([1, null, 'x'], [$message->id, $message->level, $message->details?->text]);
        // The level that is not known and the extension stand behind what is known.
        self::assertSame(bin2hex("\x08\x01" . "\x33\x0A\x01x\x34" . "\x18\x07" . "\xA2\x06\x01e"), bin2hex(Codec::encode($message)));
        self::assertSame(Level::TOP, Level::HIGH);
        $this->expectException(EncodingException::class);
        $this->expectExceptionMessage('field id (1) is required and not set');
        Codec::encode(new Legacy);
    }

    public function testAMissingRequiredFieldIsNamed(): void
    {
        $this->expectException(DecodingException::class);
        $this->expectExceptionMessage('the required field id (1) of legacy.Legacy is missing');
        Codec::decode(Legacy::class, '');
    }

    public function testAClassThatNoLongerFitsItsDescriptorIsRefused(): void
    {
        $class = new class implements Message {
            public static function typeName(): string
            {
                return 'api.User';
            }

            public static function file(): string
            {
                return Generated\Api\UsersFile::class;
            }
        };
        $this->expectException(InvalidSchemaException::class);
        $this->expectExceptionMessage('must be a final class with a public constructor');
        Codec::encode($class);
    }

    public function testAPropertyThatIsNoFieldIsRefused(): void
    {
        $file = (string) \file_get_contents(__DIR__ . '/Generated/Everything/Everything.php');
        $class = \preg_replace('/^<\?php|declare\(strict_types=1\);/', '', $file);
        eval(\preg_replace('/final class Everything ([^{]*\{)/', 'final class Enlarged $1 public int $counter = 5;', (string) $class));
        $this->expectException(InvalidSchemaException::class);
        $this->expectExceptionMessage('Enlarged::$counter is no field of the message: the class does not fit its descriptor, generate it again');
        Codec::decode(\substr(Everything::class, 0, -\strlen('Everything')) . 'Enlarged', '');
    }

    public function testAClassThatDoesNotExistIsNamed(): void
    {
        $this->expectException(InvalidSchemaException::class);
        $this->expectExceptionMessage('the class Nope does not exist');
        Codec::decode('Nope', '');
    }
}
