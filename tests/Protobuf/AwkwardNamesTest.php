<?php

declare(strict_types=1);

namespace Weft\Tests\Protobuf;

use Awkward\Inner\Inner;
use Awkward\Old\XOld;
use Awkward\PBNamespace\List\PBClass;
use Awkward\PBNamespace\List\PBClass\PBEnum;
use Awkward\PBNamespace\List\PBClass\PBList;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Protobuf\Codec;
use Weft\Protobuf\Json;
use Weft\Protobuf\WellKnown\Any;
use Weft\Protobuf\WellKnown\Duration;
use Weft\Protobuf\WellKnown\EmptyMessage;
use Weft\Protobuf\WellKnown\FieldMask;
use Weft\Protobuf\WellKnown\NullValue;

/** Files full of words that PHP reserves: their classes can be loaded, and hold what they are given. */
final class AwkwardNamesTest extends TestCase
{
    private const ROOT = __DIR__ . '/../..';
    private static string $directory;

    public static function setUpBeforeClass(): void
    {
        self::$directory = sys_get_temp_dir() . '/weft-awkward-' . bin2hex(random_bytes(8));
        self::generate(self::$directory);
        spl_autoload_register([self::class, 'load']);
    }

    public static function tearDownAfterClass(): void
    {
        spl_autoload_unregister([self::class, 'load']);
        exec('rm -rf ' . escapeshellarg(self::$directory));
    }

    public function testEveryClassThatIsGeneratedCanBeLoaded(): void
    {
        $classes = self::classes();
        foreach ($classes as $class) {
            self::assertTrue(class_exists($class) || interface_exists($class), $class);
        }

        self::assertContains('Awkward\PBNamespace\List\PBClass\PBList\PBNamespace', $classes);
        self::assertContains('Awkward\PBNamespace\List\PBInterface', $classes);
        self::assertContains('Awkward\Old\XOld\XItem\XList', $classes);
        self::assertContains('Awkward\Meta\OldFile', $classes);
    }

    public function testTheSameFilesGiveTheSameBytes(): void
    {
        $again = self::$directory . '-again';
        self::generate($again);
        exec('diff -r ' . escapeshellarg(self::$directory) . ' ' . escapeshellarg($again) . ' 2>&1', $differences);
        exec('rm -rf ' . escapeshellarg($again));

        self::assertSame([], $differences);
    }

    public function testFieldsOfThoseNamesComeBack(): void
    {
        $at = new \DateTimeImmutable('2026-01-02T03:04:05.678Z');
        $message = new PBClass(
            list: new PBList(namespace: new PBList\PBNamespace(echo: 5), parent: new PBClass(this_: 'me')),
            enum: PBEnum::DEFAULT,
            enums: [PBEnum::CLASS_, PBEnum::cases, PBEnum::FROM, 77],
            enumByName: ['a' => PBEnum::DEFAULT, '7' => 99],
            byTruth: [0 => new PBList\PBNamespace, 1 => new PBList\PBNamespace(echo: 1)],
            byFixed: [PHP_INT_MIN => "\xff"],
            times: [-1 => $at],
            values: ['text' => 'x', 'null' => null, 'list' => [1.0, ['a' => true]]],
            wrapped: [-1 => 0, 7 => -5],
            instants: [$at, $at],
            manyValues: ['a', 1.5, false, null, []],
            flags: [false, true],
            structures: [['a' => 'b'], []],
            anything: [Any::pack(new PBList)],
            class: 'c',
            unknownFields_: 'known',
            Leading: 'l',
            Twice: 't',
            a12b: 'ab',
            GLOBALS_: 'g',
            withJsonName: 'j',
            maybe: PBEnum::CLASS_,
            maybeNumber: 0,
            inner: new Inner(old: new XOld(id: 1, kind: XOld\XKind::A, item: [new XOld\XItem(name: 'n', list: new XOld\XItem\XList(depth: 3))], chosen: new XOld\XChosen(a: 4), kinds: ['b' => XOld\XKind::B])),
            ownTime: new \Awkward\PBNamespace\List\DateTimeImmutable(a: 1),
            message: new \Awkward\PBNamespace\List\Message(a: 2),
            mask: new FieldMask(['a', 'b.c']),
            duration: new Duration(-1, -500_000_000),
        );

        self::assertEquals($message, Codec::decode(PBClass::class, Codec::encode($message)));
        self::assertEquals($message, Json::decode(PBClass::class, Json::encode($message)));
        self::assertStringContainsString('"@odd \"name\"":"j"', Json::encode($message));
    }

    /** @return iterable<string, array{string, mixed}> */
    public static function members(): iterable
    {
        yield 'a timestamp' => ['at', new \DateTimeImmutable('1900-01-01T00:00:00Z')];
        yield 'a value' => ['value', ['a' => [1.0]]];
        yield 'a null in a value' => ['value', NullValue::NULL_VALUE];
        yield 'a null' => ['nothing', NullValue::NULL_VALUE];
        yield 'an empty struct' => ['structure', []];
        yield 'a wrapped zero' => ['number', 0];
        yield 'an empty message' => ['empty', new EmptyMessage];
        yield 'the first case' => ['chosenEnum', 0];
        yield 'no bytes' => ['chosenBytes', ''];
        yield 'false' => ['chosenBool', false];
    }

    /** @dataProvider members */
    #[DataProvider('members')]
    public function testAMemberOfAOneofIsSetEvenWhereItIsEmpty(string $name, mixed $value): void
    {
        $value = $name === 'chosenEnum' ? PBEnum::CLASS_ : $value;
        $message = new PBClass(...[$name => $value]);

        foreach ([Codec::decode(PBClass::class, Codec::encode($message)), Json::decode(PBClass::class, Json::encode($message))] as $back) {
            self::assertSame($name, $back->caseCase());
            self::assertEquals($value, $back->$name);
        }
    }

    public function testDefaultsOfProto2AreDocumentedOnly(): void
    {
        $old = Codec::decode(XOld::class, Codec::encode(new XOld(id: 0)));

        self::assertSame([null, null, null], [$old->text, $old->kind, $old->infinite]);
        self::assertStringContainsString('Absent means a "quoted" * / \'text\'\n$x.', (string) (new \ReflectionMethod(XOld::class, '__construct'))->getDocComment());
    }

    public function testServicesOfThoseNamesCanBeImplementedAndServed(): void
    {
        $interface = 'Awkward\PBNamespace\List\PBInterface';
        $reflection = new \ReflectionClass($interface);
        $methods = array_map(static fn(\ReflectionMethod $method): string => $method->getName(), $reflection->getMethods());

        self::assertSame(['list', 'class', 'construct', 'getTime', 'value'], $methods);
        self::assertSame($methods, array_column($interface::METHODS, 0));
        self::assertSame(EmptyMessage::class, $interface::METHODS['get_time'][1]);
        self::assertSame('awkward.namespace.list.Interface', $interface::SERVICE);
        self::assertStringContainsString('@deprecated', (string) $reflection->getDocComment());
        self::assertStringContainsString('@deprecated', (string) (new \ReflectionClass('Awkward\PBNamespace\List\InterfaceClient'))->getDocComment());
        self::assertStringContainsString('@deprecated', (string) (new \ReflectionClass('Awkward\PBNamespace\List\Old'))->getDocComment());
        self::assertStringContainsString('@deprecated', (string) (new \ReflectionClassConstant(PBEnum::class, 'FROM'))->getDocComment());
        self::assertSame([], \Awkward\PBNamespace\List\PBEmpty::METHODS);
    }

    public static function load(string $class): void
    {
        $file = self::$directory . '/' . strtr($class, '\\', '/') . '.php';
        if (is_file($file)) {
            require $file;
        }
    }

    /** @return list<string> */
    private static function classes(): array
    {
        $classes = [];
        foreach (new \RecursiveIteratorIterator(new \RecursiveDirectoryIterator(self::$directory, \FilesystemIterator::SKIP_DOTS)) as $file) {
            $classes[] = strtr(substr((string) $file, \strlen(self::$directory) + 1, -4), '/', '\\');
        }

        return $classes;
    }

    private static function generate(string $out): void
    {
        $extension = getenv('WEFT_EXTENSION') ?: self::ROOT . '/target/debug/libweft.so';
        $command = [PHP_BINARY, '-d', "extension=$extension", self::ROOT . '/bin/weft', 'proto:generate', 'names.proto', '--out', $out];
        exec('cd ' . escapeshellarg(__DIR__ . '/Fixtures/awkward') . ' && ' . implode(' ', array_map(escapeshellarg(...), $command)) . ' 2>&1', $output, $code);
        self::assertSame(0, $code, implode("\n", $output));
    }
}
