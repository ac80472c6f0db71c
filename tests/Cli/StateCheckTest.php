<?php

declare(strict_types=1);

namespace Weft\Tests\Cli;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Http\Internal\State\StateWatch;
use Weft\Tests\Runtime\Subprocess;
use Weft\Tests\Timing;

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

    /** @dataProvider interruptions */
    #[DataProvider('interruptions')]
    public function testASignalEndsTheApplicationAndRemovesTheTemporaryFiles(int $signal, string $program): void
    {
        $app = new Application('');
        \file_put_contents($app->file, '<?php require ' . \var_export(\dirname(__DIR__, 2) . '/autoload.php', true) . ";\n{$program}");
        \mkdir("$app->directory/temporary");
        $errors = "$app->directory/errors";
        $check = \proc_open(Weft::command(['state:check', $app->file]), [['file', '/dev/null', 'r'], ['file', '/dev/null', 'w'], ['file', $errors, 'w']], $pipes, null, ['TMPDIR' => "$app->directory/temporary"] + \getenv());
        try {
            $written = static fn(): string => (string) @\file_get_contents("$app->directory/pid");
            Timing::until(static fn(): bool => \str_ends_with($written(), "\n"), 'the application runs');
            \proc_terminate($check, $signal);
            Timing::until(static fn(): bool => !\proc_get_status($check)['running'], 'the command has ended');

            self::assertFalse(\posix_kill((int) $written(), 0), 'the application has ended before');
            self::assertSame([], \glob("$app->directory/temporary/*"));
        } finally {
            \proc_terminate($check, \SIGKILL);
            \proc_close($check);
            \array_map(unlink(...), \glob("$app->directory/temporary/*") ?: []);
            \rmdir("$app->directory/temporary");
        }
    }

    /** @return iterable<string, array{int, string}> */
    public static function interruptions(): iterable
    {
        $says = 'file_put_contents(__DIR__ . "/pid", getmypid() . "\n");';
        foreach (['SIGHUP' => \SIGHUP, 'SIGINT' => \SIGINT, 'SIGTERM' => \SIGTERM] as $name => $signal) {
            yield "$name before it listens" => [$signal, "$says Weft\\run(static fn() => Weft\\delay(600.0));"];
        }
        yield 'SIGTERM during a request' => [\SIGTERM, "\$app = new Weft\\App(); \$app->http('127.0.0.1:0')->get('/', static function () { $says Weft\\delay(600.0); }); \$app->run();"];
    }

    public function testAnApplicationThatListensOnAUnixSocketOnlyIsRefusedAtOnce(): void
    {
        $app = new Application('');
        \file_put_contents($app->file, '<?php require ' . \var_export(\dirname(__DIR__, 2) . '/autoload.php', true) . '; $app = new Weft\App(); $app->http("unix:" . __DIR__ . "/socket"); $app->run();');
        $ended = Weft::run(['state:check', $app->file]);

        self::assertSame(1, $ended->exitCode, $ended->errors);
        self::assertStringContainsString("{$app->file} listens on unix:{$app->directory}/socket only, and the requests of this command need a TCP address: let it listen on the address in WEFT_LISTEN, which this command sets", $ended->errors);
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
