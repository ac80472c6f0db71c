<?php

declare(strict_types=1);

namespace Weft\Tests\Bench;

use PHPUnit\Framework\TestCase;
use Weft\Bench\BenchmarkException;
use Weft\Bench\Clients\Options;
use Weft\Bench\Clients\Results;
use Weft\Bench\Clients\Run;
use Weft\Bench\Clients\Workload;

require_once __DIR__ . '/../../bench/autoload.php';

final class ClientsTest extends TestCase
{
    public function testARatioIsTheMedianOfTheRatiosOfTheRounds(): void
    {
        $runs = [];
        foreach ([1 => [100.0, 50.0], 2 => [10.0, 2.0], 3 => [300.0, 100.0]] as $round => [$weft, $peer]) {
            $runs[] = new Run(Workload::Select, 'weft-postgres', $round, $weft, 1.0);
            $runs[] = new Run(Workload::Select, 'tokio-postgres', $round, $peer, 4.0);
        }
        $table = (new Results('a machine', [], $runs))->table()->text();

        self::assertMatchesRegularExpression('/^ *select +weft-postgres +100 \(10–300\) +1\.0 +3\.00 \(2\.00–5\.00\) +0\.25$/m', $table);
        self::assertMatchesRegularExpression('/^ +tokio-postgres +50 \(2–100\) +4\.0$/m', $table);
    }

    public function testAFailedRoundIsNamedAndCountsForNothing(): void
    {
        $results = new Results('a machine', [], [
            new Run(Workload::Publish, 'weft-amqp', 1, 20.0, 1.0),
            new Run(Workload::Publish, 'lapin', 1, 10.0, 2.0),
            new Run(Workload::Publish, 'weft-amqp', 2, 0.0, 0.0, '9 messages in the queue, expected 10'),
            new Run(Workload::Publish, 'lapin', 2, 10.0, 2.0),
        ]);

        self::assertSame(['weft-amqp publish round 2: 9 messages in the queue, expected 10'], $results->failures());
        self::assertMatchesRegularExpression('/weft-amqp +20 +1\.0 +2\.00 +0\.50/', $results->table()->text());
    }

    /** An operation that is left over by the division would be missed when the rows are counted. */
    public function testOperationsAreWholeTransactionsResultsAndTurnsOfAllTasks(): void
    {
        foreach ([true, false] as $short) {
            self::assertSame(0, Workload::Insert->operations($short) % (100 * Workload::Insert->window()));
            self::assertSame(0, Workload::Select->operations($short) % Workload::Select->window());
            self::assertSame(0, Workload::Scan->operations($short) % 10_000);
        }
    }

    public function testAnUnknownLoadIsRefusedWithTheNamesOfAll(): void
    {
        $this->expectException(BenchmarkException::class);
        $this->expectExceptionMessage("unknown load 'selct'; the loads are publish, consume, select, insert, scan");
        Options::parse(['--only=selct'], '/nowhere');
    }
}
