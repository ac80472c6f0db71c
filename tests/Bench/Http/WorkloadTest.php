<?php

declare(strict_types=1);

namespace Weft\Tests\Bench\Http;

use PHPUnit\Framework\TestCase;
use Weft\Bench\Http\People;
use Weft\Bench\Http\Workload;

require_once __DIR__ . '/../../../bench/autoload.php';
require_once __DIR__ . '/../../../bench/http/fortunes.php';

/** A contender is measured only with right answers. */
final class WorkloadTest extends TestCase
{
    public function testRowsAreCountedAndEachIsAPerson(): void
    {
        $person = static fn (int $id): array => ['id' => $id, 'name' => "name_$id", 'email' => 'name@qwerty.root'];
        $five = array_map($person, [1, 9, 10_000, 9, 2]);

        self::assertTrue(Workload::Queries5->accepts(json_encode($five)));
        self::assertFalse(Workload::Queries20->accepts(json_encode($five)), 'five are not twenty');
        self::assertFalse(Workload::Queries5->accepts(json_encode([...array_slice($five, 1), ['id' => 3] + $person(4)])), 'the name of another');
        self::assertTrue(Workload::Query->accepts(json_encode($person(42))));
        self::assertFalse(Workload::Query->accepts(json_encode($person(43))));
    }

    public function testACounterHasAnIdAndAValue(): void
    {
        self::assertTrue(Workload::Update->accepts('{"value":7,"id":3}'));
        self::assertFalse(Workload::Update->accepts('{"value":"7","id":3}'));
        self::assertFalse(Workload::Update->accepts('null'));
    }

    public function testFortunesAreSortedEscapedAndComplete(): void
    {
        $rows = [];
        foreach (People::FORTUNES as $index => $message) {
            $rows[] = ['id' => $index + 1, 'message' => $message];
        }
        $page = fortunes($rows);

        self::assertTrue(Workload::Fortunes->accepts($page));
        self::assertTrue(Workload::Fortunes->accepts(str_replace(['&#039;', '&quot;'], ['&#39;', '&#34;'], $page)), 'another escape of the same');
        self::assertFalse(Workload::Fortunes->accepts(html_entity_decode($page)), 'nothing is escaped');
        self::assertFalse(Workload::Fortunes->accepts(fortunes(array_slice($rows, 1))), 'one is missing');
        $lines = explode("\n", $page);
        [$lines[2], $lines[3]] = [$lines[3], $lines[2]];
        self::assertFalse(Workload::Fortunes->accepts(implode("\n", $lines)), 'two are exchanged');
    }
}
