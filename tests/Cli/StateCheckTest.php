<?php

declare(strict_types=1);

namespace Weft\Tests\Cli;

use PHPUnit\Framework\TestCase;
use Weft\Http\Internal\State\StateWatch;
use Weft\Tests\Runtime\Subprocess;

/** Applications that leave something behind, on purpose. */
final class StateCheckTest extends TestCase
{
    private const LEAKING = __DIR__ . '/Fixtures/leaking.php';

    public function testItNamesWhatEachRequestLeftBehindWithoutItsContents(): void
    {
        $paths = ['/clean', '/reset', '/static', '/private', '/variable', '/service?to=ada'];

        $ended = Weft::run(['state:check', self::LEAKING, ...\array_map(static fn(string $path): string => "--path=$path", $paths)]);

        self::assertSame('', $ended->errors);
        $expected = [
            '~^GET /private left behind LeakingRegistry::\$count: int, before: int$~m',
            '~^GET /service left behind LeakingMailer::\$recipients: array of 2 values, before: array of 1 value$~m',
            '~^GET /static left behind LeakingRegistry::\$user: LeakingUser, before: LeakingUser$~m',
            '~^GET /variable left behind LeakingRegistry::remember\(\) \$last: string of \d+ bytes, before: string of \d+ bytes$~m',
        ];
        foreach ($expected as $line) {
            self::assertMatchesRegularExpression($line, $ended->output);
        }
        self::assertStringEndsWith("\n4 values were left behind.\n", $ended->output, $ended->output);
        self::assertStringNotContainsString('ada', $ended->output);
        self::assertSame(1, $ended->exitCode);
    }

    public function testAnApplicationThatLeavesNothingBehindPasses(): void
    {
        $ended = Weft::run(['state:check', self::LEAKING, '--path=/clean', '--path=/reset']);

        self::assertSame([0, "Nothing was left behind.\n", ''], [$ended->exitCode, $ended->output, $ended->errors]);
    }

    public function testAnApplicationThatCannotBeCheckedIsRefusedWithTheReason(): void
    {
        self::assertStringContainsString('There is no file missing.php', Weft::run(['state:check', 'missing.php'])->errors);
        self::assertStringContainsString('--repeat must be at least 3', Weft::run(['state:check', self::LEAKING, '--repeat=2'])->errors);
        self::assertStringContainsString('--repeat is "5x": it must be an integer of at least 1', Weft::run(['state:check', self::LEAKING, '--repeat=5x'])->errors);
        $ending = (string) \tempnam(\sys_get_temp_dir(), 'weft');
        \file_put_contents($ending, '<?php fwrite(STDERR, "no configuration"); exit(1);');
        try {
            self::assertMatchesRegularExpression('~has ended before it listened:\s+no configuration~', Weft::run(['state:check', $ending])->errors);
        } finally {
            \unlink($ending);
        }
    }

    public function testInDevelopmentTheLogNamesIt(): void
    {
        \putenv(StateWatch::VARIABLE . '=1');
        try {
            $ended = Subprocess::run(self::program(3, '$application->handle("/private")'));
        } finally {
            \putenv(StateWatch::VARIABLE);
        }

        self::assertSame(0, $ended->exitCode, $ended->errors);
        self::assertMatchesRegularExpression('~GET /private left behind LeakingRegistry::\$count \(int, before: int\)~', $ended->errors);
        self::assertSame(1, \substr_count($ended->errors, 'left behind'), 'once');
    }

    public function testInProductionOneOfAThousandRequestsIsComparedAndCounted(): void
    {
        $measured = '$endpoint = Weft\Native\MetricsEndpoint::open("127.0.0.1:0");';

        $leaking = Subprocess::run($measured . self::program(1_001, '$application->handle("/private")'));
        $clean = Subprocess::run($measured . self::program(1_001, '$application->handle("/clean")'));

        self::assertStringContainsString("weft_application_state_changes_total{pool=\"applications\"} 1\n", $leaking->output, $leaking->errors);
        self::assertStringContainsString("weft_application_state_changes_total{pool=\"applications\"} 0\n", $clean->output, $clean->errors);
        self::assertStringNotContainsString('left behind', $leaking->errors);
    }

    /** A program that lends its application, and prints its metrics. */
    private static function program(int $times, string $work): string
    {
        // Without what serves it.
        $classes = \explode('$applications = ', \substr((string) \file_get_contents(self::LEAKING), \strlen("<?php\n\ndeclare(strict_types=1);\n")))[0];
        $classes = (string) \preg_replace('/^(use|require_once) .*$/m', '', $classes);

        return $classes . <<<PHP
            run(static function () {
                \$pool = new Weft\Http\ApplicationPool(static fn() => new LeakingApplication(), 1);
                for (\$n = 0; \$n < $times; \$n++) {
                    \$borrowed = \$pool->borrow('GET /private');
                    \$borrowed->run(static fn(LeakingApplication \$application) => $work);
                    \$borrowed->release();
                }
            });
            echo Weft\Native\metrics();
            PHP;
    }
}
