<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Internal\Codec\JsonMemory;

final class JsonMemoryTest extends TestCase
{
    private const MIB = 1024 * 1024;

    /** @dataProvider documents */
    #[DataProvider('documents')]
    public function testTheEstimateIsNearTheMemoryThatTheValuesTake(string $value, int $times = 50_000): void
    {
        $json = self::listOf($value, $times);
        gc_collect_cycles();
        memory_reset_peak_usage();
        $before = memory_get_usage();

        $decoded = json_decode($json, true, flags: JSON_THROW_ON_ERROR);

        $taken = memory_get_peak_usage() - $before;
        unset($decoded);
        // Beside the estimate: texts, and the slots of a long list, which PHP doubles and copies.
        self::assertLessThan(1.1 * JsonMemory::estimate($json) + 1.5 * \strlen($json) + 3 * 16 * $times, $taken);
        self::assertLessThanOrEqual(108 * \strlen($json), JsonMemory::estimate($json));
    }

    /** @return iterable<string, array{0: string, 1?: int}> */
    public static function documents(): iterable
    {
        yield 'nested lists' => [str_repeat('[', 500) . '0' . str_repeat(']', 500), 200];
        yield 'nested empty lists' => [str_repeat('[', 500) . str_repeat(']', 500), 200];
        yield 'nested objects' => [str_repeat('{"":', 500) . '0' . str_repeat('}', 500), 200];
        yield 'lists of one' => ['[0]'];
        yield 'objects of one' => ['{"a":{}}'];
        yield 'lists of nine' => ['[0,0,0,0,0,0,0,0,0]'];
        yield 'objects of nine' => ['{"a":0,"b":0,"c":0,"d":0,"e":0,"f":0,"g":0,"h":0,"i":0}'];
        yield 'numbers' => ['0'];
        yield 'texts' => ['"ab"'];
        yield 'long texts' => ['"' . str_repeat('x', 1_000) . '"', 1_000];
        yield 'records' => ['{"id":1,"name":"Ada","tags":["a","b"]}'];
    }

    /** @dataProvider records */
    #[DataProvider('records')]
    public function testRecordsPassUpToTheLimitOfBodies(string $record): void
    {
        $json = self::listOf($record, intdiv(8 * self::MIB, \strlen($record) + 1));

        self::assertNull(JsonMemory::problem($json, JsonMemory::limit($json)));
    }

    /** @return iterable<array{string}> */
    public static function records(): iterable
    {
        yield ['{"x":1,"y":2}'];
        yield ['{"id":1,"qty":2}'];
        yield ['[12.51,41.92]'];
        yield ['{"id":12345,"name":"Ada Lovelace","age":36,"tags":[],"notes":{}}'];
        yield ['"text, with commas, \"quotes\" and [brackets]"'];
        yield ['0'];
    }

    public function testManySmallListsAreTooManyAndFewAreNot(): void
    {
        $many = '[' . str_repeat('[0],', self::MIB) . '0]';
        $few = '[' . str_repeat('[0],', 50_000) . '0]';

        self::assertSame(
            'consists of too many small lists and objects: its 4.0 MiB would take 232 MiB of memory, and may take 144 MiB. Send it in parts',
            JsonMemory::problem($many, JsonMemory::limit($many)),
        );
        self::assertNull(JsonMemory::problem($few, JsonMemory::limit($few)));
    }

    private static function listOf(string $value, int $times): string
    {
        return '[' . str_repeat("$value,", $times - 1) . $value . ']';
    }
}
