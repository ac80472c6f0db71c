<?php

declare(strict_types=1);

namespace Weft\Tests\Bench\Rinha;

use PHPUnit\Framework\TestCase;
use Weft\Bench\Rinha\Data;
use Weft\Bench\Rinha\Payloads;
use Weft\Bench\Rinha\SimulationLog;

require_once __DIR__ . '/../../../bench/autoload.php';

final class DataTest extends TestCase
{
    private string $directory;

    protected function setUp(): void
    {
        $this->directory = sys_get_temp_dir() . '/weft-rinha-' . getmypid();
        mkdir($this->directory);
    }

    protected function tearDown(): void
    {
        exec('rm -rf ' . escapeshellarg($this->directory));
    }

    public function testTheSameSeedMakesTheSamePeople(): void
    {
        $one = new Payloads(7);
        $other = new Payloads(7);

        for ($i = 0; $i < 500; ++$i) {
            self::assertSame($one->next(), $other->next());
        }
    }

    public function testAPersonIsValidExactlyWhenTheRulesSaySo(): void
    {
        $payloads = new Payloads(11);
        $invalid = 0;
        for ($i = 0; $i < 5_000; ++$i) {
            [$json, $nickname] = $payloads->next();
            $valid = self::isValid(json_decode($json, true));
            self::assertSame($valid, $nickname !== null, $json);
            $invalid += $valid ? 0 : 1;
        }

        // 1 in 13 has a month 13; each of nickname, name, date and stack is wrong in 1 of 99 for another reason.
        self::assertEqualsWithDelta(5_000 * (1 / 13 + 4 / 99), $invalid, 120);
    }

    public function testTheWholeLoadStoresAsManyPeopleAsTheOriginal(): void
    {
        $data = Data::write($this->directory);

        self::assertEqualsWithDelta(46_500, $data->expectedPeople(54_635), 200);
        self::assertSame(100_001, count(file($data->payloads)));
        self::assertSame(5_001, count(file($data->terms)));
        self::assertSame(0, $data->expectedPeople(0));
    }

    public function testTheLogOfGatlingIsRead(): void
    {
        $lines = ["RUN\trinha.Rinha\trinha\t1\trinha\t3.9.5", "USER\tsearch\tSTART\t5"];
        foreach (range(1, 100) as $i) {
            $lines[] = "REQUEST\t\tcreate\t1000\t" . 1000 + $i . "\tOK\t ";
        }
        $lines[] = "REQUEST\t\tread\t1000\t1500\tKO\tstatus.find.in(200), found 502";
        file_put_contents("{$this->directory}/simulation.log", implode("\n", $lines) . "\n");

        $log = SimulationLog::read("{$this->directory}/simulation.log");

        self::assertSame(101, $log->requests());
        self::assertSame(100, $log->requests('create'));
        self::assertSame(1, $log->failed());
        self::assertSame(['read: status.find.in(200), found 502' => 1], $log->failures);
        self::assertSame(50.5, $log->mean('create'));
        self::assertSame(99.0, $log->percentile(99, 'create'));
        self::assertSame(500.0, $log->percentile(100));
    }

    private static function isValid(array $person): bool
    {
        $skills = $person['stack'] ?? [];

        return strlen($person['apelido']) <= 32 && strlen($person['nome']) <= 100
            && preg_match('/^(\d{4})-(\d\d)-(\d\d)$/', $person['nascimento'], $date)
            && checkdate((int) $date[2], (int) $date[3], (int) $date[1])
            && is_array($skills)
            && array_filter($skills, static fn (mixed $skill): bool => !is_string($skill) || strlen($skill) > 32) === [];
    }
}
