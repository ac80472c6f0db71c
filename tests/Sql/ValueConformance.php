<?php

declare(strict_types=1);

namespace Weft\Tests\Sql;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Sql\Bytes;
use Weft\Sql\InvalidParameterException;
use Weft\Sql\Transaction;
use Weft\Tests\Sql\Support\Colour;
use Weft\Tests\Sql\Support\Label;
use Weft\Tests\Sql\Support\Point;
use Weft\Tests\Sql\Support\Record;
use Weft\Tests\Sql\Support\Size;

/** How values go both ways, placeholders and results, for {@see SqlConformance}. */
trait ValueConformance
{
    /** @return iterable<string, array{string, mixed, 2?: mixed}> type, parameter, result where it is another value */
    public static function values(): iterable
    {
        yield 'null' => ['TEXT', null];
        yield 'true' => ['BOOLEAN', true];
        yield 'false' => ['BOOLEAN', false];
        yield 'zero' => ['BIGINT', 0];
        yield 'largest int' => ['BIGINT', \PHP_INT_MAX];
        yield 'smallest int' => ['BIGINT', \PHP_INT_MIN];
        yield 'float' => ['float', 0.1];
        yield 'float with all its digits' => ['float', 0.1 + 0.2];
        yield 'smallest float' => ['float', 5e-324];
        yield 'largest float' => ['float', \PHP_FLOAT_MAX];
        yield 'infinity' => ['float', \INF];
        yield 'whole float stays a float' => ['float', 3.0];
        yield 'int in a float column' => ['float', 3, 3.0];
        yield 'empty text' => ['TEXT', ''];
        yield 'unicode text' => ['TEXT', "Zoë 𝄞 \u{10FFFF} 日本"];
        yield 'text with newlines, quotes and backslashes' => ['TEXT', "a\r\n\t'b' \"c\" \\d ? :e \$1 %s"];
        yield 'text that looks like a number' => ['TEXT', '007'];
        yield 'bytes' => ['bytes', new Bytes("\x00\x01\xfe\xff"), "\x00\x01\xfe\xff"];
        yield 'every byte without the wrapper' => ['bytes', \implode('', \array_map('chr', \range(0, 255)))];
        yield 'bytes that are UTF-8' => ['bytes', new Bytes('plain \\x41'), 'plain \\x41'];
        yield 'no bytes' => ['bytes', new Bytes(''), ''];
        yield 'JSON object' => ['JSON', ['a' => 1, 'b' => ['c' => null, 'd' => 1.5], 'é/"' => '𝄞']];
        yield 'JSON array' => ['JSON', [1, 'two', null, true, [3.5], ['k' => 'v']]];
        yield 'JSON empty array' => ['JSON', []];
        yield 'JSON empty object' => ['JSON', new \stdClass, []];
        yield 'JSON of an object' => ['JSON', new Point(1, 2), ['x' => 1, 'y' => 2]];
        yield 'JSON float keeps its fraction' => ['JSON', ['f' => 2.0]];
        yield 'JSON text' => ['JSON', '"abc"', 'abc'];
        yield 'date' => ['DATE', '2024-02-29', new \DateTimeImmutable('2024-02-29 00:00:00')];
        yield 'timestamp' => ['TIMESTAMP', new \DateTimeImmutable('2024-02-29 23:59:59.123456')];
        yield 'mutable date' => ['TIMESTAMP', new \DateTime('2024-02-29 23:59:59'), new \DateTimeImmutable('2024-02-29 23:59:59')];
        yield 'timestamp with a zone' => ['TIMESTAMPTZ', new \DateTimeImmutable('2024-07-01T12:00:00.5+05:30')];
        yield 'timestamp before 1970' => ['TIMESTAMPTZ', new \DateTimeImmutable('1815-12-10T00:00:00Z')];
        yield 'timestamp whose offset has seconds' => ['TIMESTAMPTZ', new \DateTimeImmutable('1890-06-01 12:00:00', new \DateTimeZone('Europe/Berlin'))];
        yield 'timestamp whose negative offset has seconds' => ['TIMESTAMPTZ', new \DateTimeImmutable('1880-06-01 12:00:00', new \DateTimeZone('America/New_York'))];
        yield 'backed enum' => ['TEXT', Colour::Red, 'red'];
        yield 'int backed enum as text' => ['TEXT', Size::Large, '3'];
        yield 'int backed enum' => ['BIGINT', Size::Large, 3];
        yield 'Stringable' => ['TEXT', new Label('named'), 'named'];
    }

    /** @dataProvider values */
    #[DataProvider('values')]
    public function testAValueComesBackAsItWent(string $type, mixed $parameter, mixed ...$other): void
    {
        $this->db->execute("CREATE TABLE box (held {$this->type($type)})");
        $expected = $other === [] ? $parameter : $other[0];

        $this->db->execute('INSERT INTO box VALUES (?)', [$parameter]);
        $alone = $this->db->execute('SELECT held FROM box')->value();
        $this->db->transaction(function (Transaction $tx) use ($parameter, $expected): void {
            $tx->execute('DELETE FROM box');
            $tx->execute('INSERT INTO box VALUES (:held)', ['held' => $parameter]);
            $this->assertValue($expected, $tx->execute('SELECT held FROM box')->value());
        });

        $this->assertValue($expected, $alone);
    }

    /** @return iterable<string, array{mixed, mixed}> */
    public static function partsOfDocuments(): iterable
    {
        $time = new \DateTimeImmutable('2024-07-01 12:00:00.5', new \DateTimeZone('Asia/Kolkata'));

        yield 'a time' => [$time, '2024-07-01T12:00:00.500000+05:30'];
        yield 'a mutable time' => [\DateTime::createFromImmutable($time), '2024-07-01T12:00:00.500000+05:30'];
        yield 'a Stringable' => [new Label('a/"b"'), 'a/"b"'];
        yield 'a backed enum' => [Colour::Red, 'red'];
        yield 'a backed enum of numbers' => [Size::Large, 3];
        yield 'a JsonSerializable' => [new Point(1, 2), ['x' => 1, 'y' => 2]];
        yield 'a JsonSerializable with others' => [new Record(['a' => $time, 'b' => new Label('x')]), ['a' => '2024-07-01T12:00:00.500000+05:30', 'b' => 'x']];
        yield 'an object' => [(object) [[new Label('me')], 'at' => $time], [['me'], 'at' => '2024-07-01T12:00:00.500000+05:30']];
        yield 'numbers' => [[1, 2.0, null, true, []], [1, 2.0, null, true, []]];
    }

    /** @dataProvider partsOfDocuments */
    #[DataProvider('partsOfDocuments')]
    public function testAValueInAMapBecomesTheJsonThatItBecomesInAList(mixed $part, mixed $expected): void
    {
        $this->db->execute("CREATE TABLE box (held {$this->type('JSON')})");

        foreach ([fn ($of) => [$of], fn ($of) => ['in' => $of], fn ($of) => ['in' => [$of]], fn ($of) => [['in' => $of]]] as $document) {
            $this->db->execute('DELETE FROM box');
            $this->db->execute('INSERT INTO box VALUES (?)', [$document($part)]);
            self::assertSame($document($expected), $this->db->execute('SELECT held FROM box')->value());
        }
    }

    public function testBytesAreNoJson(): void
    {
        $this->db->execute("CREATE TABLE box (held {$this->type('JSON')})");

        foreach ([[new Bytes('a')], ['b' => new Bytes('a')], (object) ['b' => [new Bytes('a')]], new Record(['b' => new Bytes('a')])] as $document) {
            self::thrown(InvalidParameterException::class, fn () => $this->db->execute('INSERT INTO box VALUES (?)', [$document]));
        }
        self::assertSame(0, $this->db->execute('SELECT count(*) FROM box')->value());
    }

    public function testADocumentThatContainsItselfIsRefused(): void
    {
        $map = ['a' => 1];
        $map['b'] = &$map;
        $object = new \stdClass;
        $object->a = [$object];
        $serializable = new Record([]);
        $serializable->document = ['again' => $serializable];

        foreach ([$map, $object, $serializable] as $endless) {
            self::thrown(InvalidParameterException::class, fn () => $this->db->execute('SELECT ?', [$endless]));
        }
    }

    public function testADocumentLeavesItsValuesAsTheyAre(): void
    {
        $label = new Label('named');
        $map = ['a' => &$label, 'b' => [$label]];

        $this->db->execute("CREATE TABLE box (held {$this->type('JSON')})");
        $this->db->execute('INSERT INTO box VALUES (?)', [$map]);

        self::assertSame([$label, [$label]], [$map['a'], $map['b']]);
        self::assertSame(['a' => 'named', 'b' => ['named']], $this->db->execute('SELECT held FROM box')->value());
    }

    public function testATimeThatTheClockSkipsStaysTextThatGoesBackUnchanged(): void
    {
        $this->db->execute("CREATE TABLE gaps (id INT, at {$this->type('TIMESTAMP')}, day DATE)");
        $this->db->execute("INSERT INTO gaps VALUES (1, '2024-03-31 02:30:00', '2024-03-31'), (2, '2024-03-31 03:00:00', '2018-11-04')");
        $read = function (string $zone): array {
            $default = \date_default_timezone_get();
            \date_default_timezone_set($zone);
            try {
                return $this->db->execute('SELECT at, day FROM gaps ORDER BY id')->rows();
            } finally {
                \date_default_timezone_set($default);
            }
        };

        [$skipped, $next] = $read('Europe/Berlin');
        self::assertIsString($skipped['at']);
        self::assertStringStartsWith('2024-03-31 02:30:00', \strtr($skipped['at'], 'T', ' '));
        self::assertSame('2024-03-31 03:00:00 +02:00', $next['at']->format('Y-m-d H:i:s P'));
        self::assertSame(1, $this->db->execute('UPDATE gaps SET at = ? WHERE id = 1', [$skipped['at']])->affected());
        self::assertSame('2024-03-31 02:30:00 +00:00', $read('UTC')[0]['at']->format('Y-m-d H:i:s P'));
        self::assertSame('2018-11-04', $read('America/Sao_Paulo')[1]['day']->format('Y-m-d'), 'a day without midnight is a day');
    }

    public function testTextAndBytesOfTenMegabytesGoBothWays(): void
    {
        $this->db->execute("CREATE TABLE big (t {$this->type('TEXT')}, b {$this->type('bytes')})");
        $text = \str_repeat('Zoë 789012', 1_000_000);
        $bytes = \random_bytes(1_000) . \str_repeat("\xff\x00", 5_000_000);

        $this->db->execute('INSERT INTO big VALUES (?, ?)', [$text, $bytes]);
        $row = $this->db->execute('SELECT t, b FROM big')->first();

        self::assertTrue($row['t'] === $text, 'the text has changed');
        self::assertTrue($row['b'] === $bytes, 'the bytes have changed');
    }

    public function testAnUnsupportedValueIsRefusedBeforeAnythingIsSent(): void
    {
        foreach ([\STDIN, static fn () => 1, new \ArrayObject([1]), ["\xff" => 1]] as $parameter) {
            $error = self::thrown(InvalidParameterException::class, fn () => $this->db->execute('SELECT ?', [$parameter]));
            self::assertStringContainsString('parameter', \strtolower($error->getMessage()));
        }
    }

    public function testAnArrayThatContainsItselfIsRefused(): void
    {
        $endless = [1];
        $endless[] = &$endless;

        self::thrown(InvalidParameterException::class, fn () => $this->db->execute('SELECT ?', [$endless]));
    }

    public function testAnExceptionOfAParameterIsPassedOn(): void
    {
        $broken = new class () implements \Stringable {
            public function __toString(): string
            {
                throw new \LogicException('not now');
            }
        };

        $error = self::thrown(\LogicException::class, fn () => $this->db->execute('SELECT ?', [$broken]));

        self::assertSame('not now', $error->getMessage());
        self::assertSame(1, $this->db->execute('SELECT 1')->value());
    }

    public function testQuestionMarksAreFilledInOrderAndNamesByName(): void
    {
        $this->db->execute('CREATE TABLE pairs (a TEXT, b TEXT)');

        $this->db->execute('INSERT INTO pairs VALUES (?, ?)', ['1', '2']);
        $this->db->execute('INSERT INTO pairs VALUES (:a, :b)', ['b' => '4', 'a' => '3']);
        $this->db->execute('INSERT INTO pairs VALUES (:x, :x)', [':x' => '5']);

        self::assertSame(
            [['a' => '1', 'b' => '2'], ['a' => '3', 'b' => '4'], ['a' => '5', 'b' => '5']],
            $this->db->execute('SELECT a, b FROM pairs ORDER BY a')->rows(),
        );
    }

    public function testPlaceholdersInStringsAndCommentsAreText(): void
    {
        self::assertSame("? :a 'x'", $this->db->execute("SELECT '? :a ''x''' /* ? :b */ -- ?\n")->value());
    }

    /** @return iterable<string, array{string, array<int|string, mixed>, string}> */
    public static function misfits(): iterable
    {
        yield 'too few' => ['SELECT ?, ?', ['secret'], '2 ? placeholders, but 1 parameter was given'];
        yield 'too many' => ['SELECT 1', ['secret', 'secret'], 'no placeholder'];
        yield 'a missing name' => ['SELECT :a, :b', ['a' => 'secret'], ':b'];
        yield 'an unknown name' => ['SELECT :a', ['a' => 'secret', 'z' => 'secret'], ':z'];
        yield 'both kinds' => ['SELECT ?, :a', ['a' => 'secret'], 'mixes'];
        yield 'names for question marks' => ['SELECT ?', ['a' => 'secret'], ':a'];
        yield 'a list for names' => ['SELECT :a', ['secret'], ':a'];
        yield 'a list with gaps' => ['SELECT ?, ?', [1 => 'secret', 3 => 'secret'], 'key 1'];
    }

    /**
     * @dataProvider misfits
     *
     * @param array<int|string, mixed> $parameters
     */
    #[DataProvider('misfits')]
    public function testParametersThatDoNotFitAreRefusedByNameAndWithoutTheirValue(string $sql, array $parameters, string $reason): void
    {
        $error = self::thrown(InvalidParameterException::class, fn () => $this->db->execute($sql, $parameters));

        self::assertStringContainsString($reason, $error->getMessage());
        self::assertStringContainsString($sql, $error->getMessage());
        self::assertStringNotContainsString('secret', $error->getMessage());
        self::assertSame($sql, $error->statement);
    }

    public function testAListForInIsRefusedBeforeItMatchesEverythingOrNothing(): void
    {
        $this->db->execute('CREATE TABLE t (id INT)');
        $this->db->execute('INSERT INTO t VALUES (1), (2)');

        foreach (['DELETE FROM t WHERE id NOT IN (?)' => [[1, 2]], 'DELETE FROM t WHERE id not in( :ids )' => ['ids' => [1, 2]]] as $sql => $parameters) {
            $error = self::thrown(InvalidParameterException::class, fn () => $this->db->execute($sql, $parameters));
            self::assertMatchesRegularExpression('/ANY\(\?\)|IN \(\?, \?, \?\)/', $error->getMessage());
        }

        self::assertSame([1, 2], $this->db->execute('SELECT id FROM t WHERE id IN (?, ?) ORDER BY id', [1, 2])->column());
    }

    public function testParametersThatDoNotFitLeaveATransactionUsable(): void
    {
        $this->db->execute('CREATE TABLE t (a TEXT)');

        $this->db->transaction(function (Transaction $tx): void {
            $tx->execute('INSERT INTO t VALUES (?)', ['1']);
            self::thrown(InvalidParameterException::class, fn () => $tx->execute('INSERT INTO t VALUES (?, ?)', ['1']));
            $tx->execute('INSERT INTO t VALUES (?)', ['2']);
        });

        self::assertSame(['1', '2'], $this->db->execute('SELECT a FROM t ORDER BY a')->column());
    }

    public function testAResultIsReadInEveryForm(): void
    {
        $result = $this->db->execute("SELECT 1 AS n, 'a' AS s UNION ALL SELECT 2, 'b' ORDER BY 1");

        self::assertSame([['n' => 1, 's' => 'a'], ['n' => 2, 's' => 'b']], $result->rows());
        self::assertSame($result->rows(), \iterator_to_array($result));
        self::assertSame(['n' => 1, 's' => 'a'], $result->first());
        self::assertSame(1, $result->value());
        self::assertSame([1, 2], $result->column());
        self::assertSame(['n', 's'], $result->columns());
        self::assertSame(2, $result->affected());
        self::assertCount(2, $result);
    }

    public function testAResultWithoutRowsStillKnowsItsColumns(): void
    {
        $result = $this->db->execute("SELECT 1 AS n, 'a' AS s WHERE 1 = 0");

        self::assertSame([], $result->rows());
        self::assertNull($result->first());
        self::assertNull($result->value());
        self::assertSame([], $result->column());
        self::assertSame(['n', 's'], $result->columns());
        self::assertCount(0, $result);
    }

    public function testColumnsNamedLikeNumbersOrNothingAreFound(): void
    {
        $row = $this->db->execute('SELECT 1 AS "7", 2 AS "-3", 3 AS "07", 4 AS " "')->first();

        self::assertSame([7 => 1, -3 => 2, '07' => 3, ' ' => 4], $row);
        self::assertSame(1, $row['7']);
    }

    public function testAffectedCountsChangedRows(): void
    {
        $this->db->execute('CREATE TABLE t (a BIGINT)');

        self::assertSame(3, $this->db->execute('INSERT INTO t VALUES (1), (2), (3)')->affected());
        self::assertSame(2, $this->db->execute('UPDATE t SET a = a + 10 WHERE a > ?', [1])->affected());
        self::assertSame(0, $this->db->execute('DELETE FROM t WHERE a = 99')->affected());
        if ($this->hasReturning()) {
            self::assertSame([11 + 1, 13], $this->db->execute('DELETE FROM t WHERE a > 9 RETURNING a')->column());
        }
        self::assertSame(0, $this->db->execute('CREATE TABLE other (a BIGINT)')->affected());
    }

    public function testAResultOfAHundredThousandRowsIsComplete(): void
    {
        $column = $this->db->execute($this->series(100_000))->column();

        self::assertSame(\range(1, 100_000), $column);
    }

    private function assertValue(mixed $expected, mixed $actual): void
    {
        if ($expected instanceof \DateTimeInterface) {
            self::assertInstanceOf(\DateTimeImmutable::class, $actual);
            self::assertSame((float) $expected->format('U.u'), (float) $actual->format('U.u'));
        } elseif (\is_float($expected) && \is_nan($expected)) {
            self::assertNan($actual);
        } else {
            self::assertSame($expected, $actual);
        }
    }
}
