<?php

declare(strict_types=1);

namespace Weft\Tests\Cli;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Cli\Internal\Interpreter;
use Weft\Tests\Timing;

final class RunTest extends TestCase
{
    public function testWorkersKnowTheirIndexAndTheirCount(): void
    {
        $app = new Application('fwrite(STDERR, "I am " . Worker::index() . " of " . Worker::count() . "\n"); Worker::untilStopped();');
        $run = new Supervised($app->file, ['--workers=2']);
        $run->wait('is ready');
        $run->wait('is ready');
        $run->signal(\SIGTERM);

        self::assertSame(0, $run->end());
        $lines = \explode("\n", \trim($run->other));
        \sort($lines);
        self::assertSame(['I am 1 of 2', 'I am 2 of 2'], $lines);
    }

    public function testAKilledWorkerIsReplacedAtOnceAndItsSignalIsNamed(): void
    {
        $app = Application::idle();
        $run = new Supervised($app->file);
        $worker = $run->wait('is ready')['pid'];
        \posix_kill($worker, \SIGKILL);

        $ended = $run->wait('ended');
        self::assertStringContainsString('ended with SIGKILL (not sent by this supervisor', $ended['message']);
        self::assertSame([$worker, null, 'SIGKILL'], [$ended['pid'], $ended['exit_code'], $ended['signal']]);
        self::assertNotSame($worker, $run->wait('is ready')['pid']);
    }

    public function testACrashLoopBacksOffAndThenGivesUp(): void
    {
        $app = new Application('throw new RuntimeException("no database");');
        $run = new Supervised($app->file, ['--max-crashes=4']);

        self::assertSame(1, $run->end());
        $delays = \array_column(\array_filter($run->log, static fn(array $line): bool => \str_contains($line['message'], 'is started again')), 'seconds');
        self::assertCount(4, $delays, $run->messages());
        self::assertEquals(0.0, $delays[0]);
        self::assertEqualsWithDelta(0.1, $delays[1], 0.02);
        self::assertEqualsWithDelta(0.2, $delays[2], 0.03);
        self::assertCount(1, $run->all('giving up: every worker has failed 4 times in a row'));
        self::assertCount(4, $run->all('ended with exit code 255'));
        self::assertStringContainsString('no database', $run->other);
    }

    public function testAWorkerThatAlwaysFailsIsTriedAgainWhileAnotherOneIsReady(): void
    {
        $app = new Application('if (Worker::index() === 2) { throw new RuntimeException("no database"); } Worker::untilStopped();');
        $run = new Supervised($app->file, ['--workers=2', '--max-crashes=1']);
        $again = $run->wait('failures in a row: 4');
        self::assertSame(2, $again['worker']);
        $run->signal(\SIGTERM);

        self::assertSame(0, $run->end());
        self::assertSame([], $run->all('giving up'), $run->messages());
    }

    public function testAWorkerThatCannotBeStartedDoesNotEndThoseThatServe(): void
    {
        $app = Application::idle();
        $php = "$app->directory/php";
        \copy(\PHP_BINARY, $php);
        \chmod($php, 0o755);
        $run = new Supervised($app->file, ['--workers=2'], through: ['sh', '-c', 'program=$1; shift 2; exec "$program" "$@"', 'sh', $php]);
        $old = [$run->wait('is ready')['pid'], $run->wait('is ready')['pid']];
        // As while a package is upgraded.
        \rename($php, "$php.new");
        $run->signal(\SIGHUP);
        self::assertStringContainsString('cannot start a worker: No such file or directory', $run->wait('cannot start a worker')['message']);
        $run->wait('did not start; the running workers stay');
        \posix_kill($old[0], \SIGKILL);
        self::assertSame('error', $run->wait('cannot start a worker')['level']);
        $run->wait('is started again');
        self::assertTrue(\posix_kill($old[1], 0));
        \rename("$php.new", $php);
        $run->wait('is ready');
        $run->signal(\SIGHUP);
        $run->wait('reload finished');
        $run->signal(\SIGTERM);

        self::assertSame(0, $run->end());
        self::assertSame([], $run->all('giving up'), $run->messages());
    }

    public function testAnAddressInUseEndsItAtOnce(): void
    {
        $other = \stream_socket_server('tcp://127.0.0.1:0');
        self::assertIsResource($other);
        $address = \stream_socket_get_name($other, false);
        $app = new Application("\$app = new Weft\\App(); \$app->http('$address'); \$app->run();");
        $run = new Supervised($app->file, ['--workers=2']);

        self::assertSame(1, $run->end());
        self::assertCount(1, $run->all("giving up: cannot listen on $address: Address already in use"), $run->messages());
        self::assertCount(0, $run->all('is started again'), $run->messages());
    }

    public function testAnAddressInUseIsTriedAgainWhileSourcesAreWatched(): void
    {
        $other = \stream_socket_server('tcp://127.0.0.1:0');
        self::assertIsResource($other);
        $address = \stream_socket_get_name($other, false);
        $app = new Application("\$app = new Weft\\App(); \$app->http('$address'); \$app->run();");
        $run = new Supervised($app->file, ['--watch']);
        $run->wait('is started again');
        $app->write('Worker::untilStopped();');
        $run->wait('is ready');
        $run->signal(\SIGTERM);

        self::assertSame(0, $run->end());
        self::assertSame([], $run->all('giving up'), $run->messages());
    }

    public function testWhileSourcesAreWatchedAnApplicationThatDoesNotStartWaitsForAChange(): void
    {
        $app = new Application('throw new \LogicException("broken");');
        $run = new Supervised($app->file, ['--watch', '--workers=2']);
        $run->wait('does not start');
        // The second worker has no line of its own: it fails as often, and is started no more.
        $fail = static function (int $times) use ($run): void {
            Timing::until(static function () use ($run, $times): bool {
                $run->look();

                return \count($run->all('ended with exit code 255')) === $times;
            }, "the workers have failed $times times");
        };
        $fail(4);
        self::assertSame(["$app->file does not start: waiting for a change"], $run->all('does not start'), $run->messages());
        $app->write('throw new \LogicException("still broken");');
        $run->wait('does not start');
        $fail(6);
        $before = \count($run->all(') started'));
        $app->write('Worker::untilStopped();');
        $run->wait('reload finished');
        $run->signal(\SIGTERM);

        self::assertSame(0, $run->end());
        self::assertSame($before + 2, \count($run->all(') started')), "each worker is started once with the new code:\n" . $run->messages());
    }

    public function testAnAddressInUseDoesNotEndWorkersThatServe(): void
    {
        $other = \stream_socket_server('tcp://127.0.0.1:0');
        self::assertIsResource($other);
        $address = \stream_socket_get_name($other, false);
        $app = new Application("
            if (Worker::index() === 2) { Handler::waitsFor('one.ready'); \$app = new Weft\\App(); \$app->http('$address'); \$app->run(); }
            touch(__DIR__ . '/one.ready');
            Worker::untilStopped();");
        $run = new Supervised($app->file, ['--workers=2']);
        $run->wait('is started again');
        $run->signal(\SIGTERM);
        $run->end();

        self::assertSame([], $run->all('giving up'), $run->messages());
    }

    /** @return iterable<string, array{string, string}> program, and what the log says of it */
    public static function programsThatReturn(): iterable
    {
        yield 'a program without an application' => ['delay(0.01);', 'app.php must end with App::run(), or call Worker::untilStopped()'];
        yield 'a front controller of Symfony with another runtime' => [
            "'autoload_runtime.php'; echo 'one answer';",
            'app.php is a front controller of Symfony, and the runtime in use answers one request. Set APP_RUNTIME=\'Weft\\Bridge\\Symfony\\Runtime\', or in'
                . ' composer.json {"extra": {"runtime": {"class": "Weft\\\\Bridge\\\\Symfony\\\\Runtime"}}}',
        ];
        yield 'a front controller of Laravel' => ['Illuminate\Contracts\Http\Kernel::class;', 'app.php is a front controller of Laravel: serve it by `php artisan weft:serve`'];
    }

    /** @dataProvider programsThatReturn */
    #[DataProvider('programsThatReturn')]
    public function testAProgramThatEndsInsteadOfServingIsToldHowItIsServed(string $program, string $advice): void
    {
        $app = new Application($program);
        $run = new Supervised($app->file, ['--max-crashes=1']);

        self::assertSame(1, $run->end());
        self::assertStringContainsString($advice, $run->all('ended with exit code 0 after')[0] ?? $run->messages());
    }

    public function testAHungWorkerIsNamedWithItsFunctionAndReplaced(): void
    {
        $app = new Application('Worker::ready(); if (!is_file(__DIR__ . "/once")) { touch(__DIR__ . "/once"); delay(0.01); Handler::blocks(); } Worker::untilStopped();');
        $run = new Supervised($app->file, ['--hang-timeout=2']);
        $first = $run->wait('is ready')['pid'];

        $hang = $run->wait('hangs');
        self::assertSame($first, $hang['pid']);
        self::assertMatchesRegularExpression('/(strlen\(\)\n#1 )?Handler::blocks\(\) at \S+app\.php:\d+\n/', $hang['message']);
        self::assertStringContainsString('ended with', $run->wait('ended')['message']);
        self::assertNotSame($first, $run->wait('is ready')['pid']);
    }

    public function testAWorkerThatBlocksInASystemCallIsNamedToo(): void
    {
        $app = new Application('Worker::ready(); delay(0.01); \sleep(100);');
        $run = new Supervised($app->file, ['--hang-timeout=2'], ['WEFT_HOOKS' => 'off']);

        self::assertSame('sleep()', $run->wait('hangs')['function']);
    }

    /** @dataProvider blockWarnings */
    #[DataProvider('blockWarnings')]
    public function testACallThatBlocksForLongIsNamedAndTheWorkerGoesOn(string $option): void
    {
        $app = new Application('Worker::ready(); delay(0.01); \usleep(1_500_000); delay(0.01); fwrite(STDERR, "awake\n"); Worker::untilStopped();');
        $run = new Supervised($app->file, [$option, '--hang-timeout=60'], ['WEFT_HOOKS' => 'off']);

        // A busy machine may keep other calls waiting as well: those are named by themselves.
        $warning = $run->waitForMatch('/ is blocked: usleep\(\) /');
        self::assertSame('warning', $warning['level']);
        self::assertSame('usleep()', $warning['function']);
        self::assertMatchesRegularExpression('/ is blocked: usleep\(\) has held up the event loop for \d+\.\d+ s\n#0 usleep\(\)\n#1 \{closure[^}]*\}\(\) at \S+app\.php:\d+/', $warning['message']);
        $run->waitForOutput('awake');
        $run->signal(\SIGTERM);

        self::assertSame(0, $run->end());
        self::assertCount(1, $run->all(' is blocked: usleep()'), $run->messages());
        self::assertSame([], $run->all('hangs'));
    }

    public function testAStackThatIsReadWhileFunctionsAreCalledIsWhole(): void
    {
        $app = new Application('
            Worker::ready();
            $computes = static function (): void {
                for ($end = \hrtime(true) + 80e6; \hrtime(true) < $end;) {
                    \md5("");
                }
            };
            $task = \Weft\async(static function () use ($computes): void {
                for (;; delay(0.002)) {
                    $computes();
                }
            });
            Worker::untilStopped();
            $task->cancel();
        ');
        $run = new Supervised($app->file, ['--block-warning=0.02', '--hang-timeout=60'], ['WEFT_HOOKS' => 'off']);
        for ($i = 0; $i < 15; $i++) {
            $run->wait('is blocked');
        }
        $run->signal(\SIGTERM);
        $run->end();

        $whole = static fn (string $stack): bool => \preg_match('/closure[^\n]* at \S+app\.php/', $stack) === 1;
        self::assertSame([], \array_values(\array_filter($run->all('is blocked'), static fn (string $stack): bool => !$whole($stack))));
    }

    public static function blockWarnings(): iterable
    {
        yield 'asked for' => ['--block-warning=0.2'];
        yield 'while developing' => ['--watch'];
    }

    public function testBlockingCallsAreNotReportedInProduction(): void
    {
        $app = new Application('Worker::ready(); delay(0.01); \usleep(400_000); delay(0.01); fwrite(STDERR, "awake\n"); Worker::untilStopped();');
        $run = new Supervised($app->file, environment: ['WEFT_HOOKS' => 'off']);
        $run->waitForOutput('awake');
        $run->signal(\SIGTERM);

        self::assertSame(0, $run->end());
        self::assertSame([], $run->all('is blocked'));
    }

    public function testAWorkerThatOnlyWaitsDoesNotHang(): void
    {
        $app = new Application('Worker::ready(); delay(5.0); fwrite(STDERR, "slept well\n"); Worker::untilStopped();');
        $run = new Supervised($app->file, ['--hang-timeout=2']);
        $run->waitForOutput('slept well');
        $run->signal(\SIGTERM);

        self::assertSame(0, $run->end());
        self::assertSame([], $run->all('hangs'));
    }

    public function testReloadStartsANewWorkerBeforeTheOldOneDrains(): void
    {
        $app = Application::idle();
        $run = new Supervised($app->file, ['--workers=2']);
        $old = [$run->wait('is ready')['pid'], $run->wait('is ready')['pid']];
        $run->signal(\SIGHUP);
        $run->wait('reload finished');
        $run->signal(\SIGTERM);

        self::assertSame(0, $run->end());
        foreach ($old as $pid) {
            $end = self::position($run, 'ended', $pid);
            $worker = $run->log[$end]['worker'];
            $ready = self::readyPositions($run, $worker);
            self::assertLessThan($end, $ready[1], $run->messages());
            self::assertStringContainsString(': SIGHUP', $run->log[$end]['message']);
        }
    }

    public function testAReloadIsFinishedWhenTheOldWorkerAcceptsNoMoreWork(): void
    {
        $app = new Application('
            $signals = new Weft\Runtime\Internal\Signals(SIGTERM);
            Worker::ready();
            $signals->wait();
            fwrite(STDERR, "told\n");
            Handler::waitsFor("go");
            Worker::draining();
            fwrite(STDERR, "accepts nothing\n");
            Handler::waitsFor("end");');
        $run = new Supervised($app->file);
        $run->wait('is ready');
        $run->signal(\SIGHUP);
        $run->waitForOutput('told');
        $run->signal(\SIGUSR1);
        $run->wait('bytes');
        self::assertSame([], $run->all('reload finished'));

        \touch("$app->directory/go");
        $run->wait('reload finished');
        self::assertSame([], $run->all('ended'));
        self::assertStringContainsString('accepts nothing', $run->other);

        \touch("$app->directory/end");
        $run->wait('ended');
        $run->signal(\SIGTERM);
        self::assertSame(0, $run->end());
    }

    /** The signal by which PHP-FPM reloads. */
    public function testSigusr2ReloadsToo(): void
    {
        $app = Application::idle();
        $run = new Supervised($app->file);
        $run->wait('is ready');
        $run->signal(\SIGUSR2);

        self::assertSame('reload: SIGUSR2', $run->wait('reload')['message']);
        $run->wait('reload finished');
        $run->signal(\SIGTERM);
        self::assertSame(0, $run->end());
    }

    public function testAReloadIsFinishedHoweverLongTheNamesOfTheTasksAreThatStillRun(): void
    {
        // Each byte is six in JSON: the longest that a report can be.
        $app = new Application('
            for ($i = 0; $i < 25; $i++) { async(fn() => Handler::waitsFor("go"))->named("tenant " . str_repeat("\x01", 20_000)); }
            Worker::untilStopped();');
        $run = new Supervised($app->file);
        $run->wait('is ready');
        $run->signal(\SIGHUP);

        $run->wait('reload finished');
        \touch("$app->directory/go");
        $run->signal(\SIGTERM);
        self::assertSame(0, $run->end());
    }

    public function testAWorkerThatCrashesWhileItsSuccessorStartsHasCrashed(): void
    {
        $app = Application::idle();
        $run = new Supervised($app->file, ['--metrics=127.0.0.1:0']);
        $metrics = $run->wait('metrics')['address'];
        $old = $run->wait('is ready')['pid'];
        $app->write('Handler::waitsFor("go"); Worker::untilStopped();');
        $run->signal(\SIGHUP);
        $run->wait('started');
        \posix_kill($old, \SIGKILL);

        self::assertStringEndsWith(': crash', $run->wait("(pid $old) ended with SIGKILL")['message']);
        \touch("$app->directory/go");
        $run->wait('reload finished');
        self::assertStringContainsString('weft_worker_exits_total{reason="crash"} 1', (string) \file_get_contents("http://$metrics/metrics"));
        self::assertSame([], $run->all('is started again'), $run->messages());
    }

    public function testAChangedFileIsNoLabelOfMetrics(): void
    {
        $app = Application::idle();
        $run = new Supervised($app->file, ['--watch', '--metrics=127.0.0.1:0']);
        $metrics = $run->wait('metrics')['address'];
        $run->wait('is ready');
        \file_put_contents($app->file, '// changed', \FILE_APPEND);
        $run->wait('ended with exit code 0');

        $counts = static fn(): bool => \str_contains((string) \file_get_contents("http://$metrics/metrics"), 'weft_worker_exits_total{reason="changed"} 1');
        Timing::until($counts, 'the end is counted without the name of the file');
    }

    public function testASupervisorWhoseParentIgnoresSigchldRestartsItsWorkers(): void
    {
        $app = Application::idle();
        $run = new Supervised($app->file, through: ['env', '--ignore-signal=CHLD']);
        $worker = $run->wait('is ready')['pid'];
        self::assertSame(0, self::ignored($worker) & 1 << (\SIGCHLD - 1), 'programs of the worker are waited for');
        \posix_kill($worker, \SIGKILL);
        $run->wait('ended with SIGKILL');
        $run->wait('is ready');
        $run->signal(\SIGTERM);

        self::assertSame(0, $run->end());
    }

    /** The signals that a process ignores, as a mask. */
    private static function ignored(int $pid): int
    {
        self::assertSame(1, \preg_match('/^SigIgn:\s+([0-9a-f]+)$/m', (string) \file_get_contents("/proc/$pid/status"), $found));

        return (int) \hexdec($found[1]);
    }

    public function testCodeThatDoesNotStartLeavesTheOldWorkersInPlace(): void
    {
        $app = Application::idle();
        $run = new Supervised($app->file);
        $old = $run->wait('is ready')['pid'];
        $app->write('syntax error;');
        $run->signal(\SIGHUP);
        $run->wait('did not start; the running workers stay');

        self::assertTrue(\posix_kill($old, 0));
        $app->write('Worker::untilStopped();');
        $run->signal(\SIGHUP);
        $run->wait('reload finished');
    }

    /** What a developer waits for: from the end of the write to the first answer of the new code. */
    public function testASavedFileIsServedByANewWorkerSoonerThanAnotherSupervisorStarts(): void
    {
        $socket = \stream_socket_server('tcp://127.0.0.1:0');
        $address = (string) \stream_socket_get_name($socket, false);
        \fclose($socket);
        $idle = Application::idle();
        $version = static fn(int $number): string => "
            \$server = new Weft\\Http\\Server((new Weft\\Http\\Router())->get('/', fn() => Weft\\Http\\Response::text('$number')));
            \$server->listen('$address');
            async(\$server->run(...));
            Worker::untilStopped();
            \$server->stop();";
        $app = new Application($version(0));
        $run = new Supervised($app->file, ['--watch']);
        $run->wait('is ready');
        $seconds = $parts = [];
        for ($number = 1; $number <= 7; $number++) {
            // A supervisor's start and its worker's: the measure of how fast this machine is now.
            $begun = \hrtime(true);
            $another = new Supervised($idle->file);
            $another->wait('is ready');
            $start = (\hrtime(true) - $begun) / 1e9;
            $another->signal(\SIGTERM);
            $another->end();
            $app->write($version($number));
            $saved = \hrtime(true);
            self::assertSame("reload: changed: $app->file", $run->wait('reload: ')['message']);
            while (\file_get_contents("http://$address/") !== (string) $number) {
                self::assertLessThan(60e9, \hrtime(true) - $saved, $run->messages());
            }
            $seconds[] = (\hrtime(true) - $saved) / 1e9;
            $parts[] = $seconds[$number - 1] / $start;
            $run->wait('ended');
        }
        \sort($seconds);
        \sort($parts);
        if (\getenv('WEFT_FIGURES')) {
            \vfprintf(\STDERR, "\nfrom save to the first new answer: %.0f ms (%.0f-%.0f)", \array_map(static fn(float $one): float => 1000 * $one, [$seconds[3], $seconds[0], $seconds[6]]));
            \vfprintf(\STDERR, ", of a supervisor's start: %.2f (%.2f-%.2f)\n", [$parts[3], $parts[0], $parts[6]]);
        }

        self::assertLessThan(1.0, $parts[0], 'the best of seven');
    }

    public function testTheProjectOfAFrontControllerIsWatched(): void
    {
        $project = new Application('');
        \file_put_contents("$project->directory/composer.json", '{}');
        \mkdir("$project->directory/public");
        try {
            \file_put_contents("$project->directory/public/index.php", $project->program('Worker::untilStopped();'));
            $run = new Supervised("$project->directory/public/index.php", ['--watch']);
            $run->wait('is ready');
            $project->write('');

            self::assertSame("reload: changed: $project->file", $run->wait('reload')['message']);
            $run->signal(\SIGQUIT);
            $run->end();
        } finally {
            \unlink("$project->directory/public/index.php");
            \rmdir("$project->directory/public");
        }
    }

    public function testASingleFileIsWatchedAndNothingBesideIt(): void
    {
        $app = Application::idle();
        \mkdir("$app->directory/settings");
        $file = "$app->directory/settings/.env";
        \file_put_contents($file, 'A=1');
        try {
            $run = new Supervised($app->file, ["--watch-path=$file"]);
            $run->wait('is ready');
            \file_put_contents("$app->directory/settings/other.php", '');
            // As editors save it.
            \file_put_contents("$file~", 'A=2');
            \rename("$file~", $file);
            $run->wait('reload finished');
            $run->signal(\SIGTERM);

            self::assertSame(0, $run->end());
            self::assertSame(["reload: changed: $file"], $run->all('reload: '));
        } finally {
            \exec('rm -rf ' . \escapeshellarg("$app->directory/settings"));
        }
    }

    public function testWhatPutenvHasAddedIsNotInTheEnvironmentOfTheNextProcess(): void
    {
        \putenv('WEFT_TEST_ADDED=1');
        try {
            $environment = Interpreter::environment();
        } finally {
            \putenv('WEFT_TEST_ADDED');
        }

        self::assertArrayNotHasKey('WEFT_TEST_ADDED', $environment);
        self::assertSame(\getenv('PATH'), $environment['PATH']);
    }

    public function testAFileThatIsNoSourceChangesNothing(): void
    {
        $app = Application::idle();
        $run = new Supervised($app->file, ['--watch']);
        $run->wait('is ready');
        \file_put_contents("$app->directory/data.sqlite", 'x');
        $run->signal(\SIGUSR1);
        $run->wait('bytes');
        // The kernel tells of changes in their order: once this one is known, the other was.
        $app->write('Worker::untilStopped();');
        $run->wait('reload finished');
        $run->signal(\SIGTERM);

        self::assertSame(0, $run->end());
        self::assertSame(["reload: changed: $app->file"], $run->all('reload: '));
    }

    public function testADirectoryThatArrivesOrGoesWithSourceFilesTriggersAReload(): void
    {
        $app = Application::idle();
        $source = "$app->directory/src";
        \mkdir("$app->directory/.new/deeper", recursive: true);
        \file_put_contents("$app->directory/.new/deeper/a.php", '');
        try {
            $run = new Supervised($app->file, ['--watch']);
            $run->wait('is ready');
            foreach (['arrives' => ["$app->directory/.new", $source], 'goes' => [$source, "$app->directory/.old"]] as $what => [$from, $to]) {
                \rename($from, $to);
                self::assertSame("reload: changed: $source", $run->wait('reload: ')['message'], $what);
                $run->wait('reload finished');
            }
        } finally {
            \exec('rm -rf ' . \escapeshellarg($source) . ' ' . \escapeshellarg("$app->directory/.new") . ' ' . \escapeshellarg("$app->directory/.old"));
        }
    }

    public function testDirectoriesOfDataComeAndGoWithoutAReload(): void
    {
        $app = Application::idle();
        $run = new Supervised($app->file, ['--watch']);
        $run->wait('is ready');
        \mkdir("$app->directory/uploads");
        \file_put_contents("$app->directory/uploads/a.jpg", '');
        \unlink("$app->directory/uploads/a.jpg");
        \rmdir("$app->directory/uploads");
        // The kernel tells of changes in their order: once this one is known, the others were.
        $app->write('Worker::untilStopped();');
        $run->wait('reload finished');
        $run->signal(\SIGTERM);

        self::assertSame(0, $run->end());
        self::assertSame(["reload: changed: $app->file"], $run->all('reload: '));
    }

    public function testADirectoryThatCannotBeReadIsNamedAndTheOthersAreWatched(): void
    {
        $app = Application::idle();
        \mkdir("$app->directory/private", 0);
        // Without these capabilities root cannot read it either.
        $through = \posix_geteuid() === 0 ? ['setpriv', '--bounding-set=-dac_override,-dac_read_search'] : [];
        try {
            $run = new Supervised($app->file, ['--watch'], through: $through);
            $warning = $run->wait('is not watched');
            self::assertSame('warning', $warning['level']);
            self::assertSame("$app->directory/private is not watched, its changes trigger no reload: Permission denied (os error 13)", $warning['message']);
            $run->wait('is ready');
            $app->write('Worker::untilStopped();');
            $run->wait('reload finished');
            $run->signal(\SIGTERM);

            self::assertSame(0, $run->end());
        } finally {
            \rmdir("$app->directory/private");
        }
    }

    public function testTheLimitOfWatchesIsNamedAndWhatIsWatchedStays(): void
    {
        $limited = ['unshare', '--user', '--map-root-user', 'sh', '-c', 'echo 1 > /proc/sys/user/max_inotify_watches && exec "$@"', 'sh'];
        \exec(\implode(' ', \array_map(\escapeshellarg(...), [...$limited, 'true'])) . ' 2>&1', $output, $refused);
        if ($refused !== 0) {
            self::markTestSkipped('a user namespace with a limit of its own is not allowed: ' . \implode(' ', $output));
        }
        $app = Application::idle();
        \mkdir("$app->directory/a");
        \mkdir("$app->directory/b");
        try {
            $run = new Supervised($app->file, ['--watch'], through: $limited);
            self::assertStringContainsString('fs.inotify.max_user_watches', $run->wait('not watched')['message']);
            $run->wait('is ready');
            $app->write('Worker::untilStopped();');
            $run->wait('reload finished');
            $run->signal(\SIGTERM);

            self::assertSame(0, $run->end());
            self::assertCount(1, $run->all('not watched'), $run->messages());
        } finally {
            \rmdir("$app->directory/a");
            \rmdir("$app->directory/b");
        }
    }

    public function testAClosedTerminalStopsItGracefully(): void
    {
        \exec('script --version', $output, $missing);
        if ($missing !== 0) {
            self::markTestSkipped('needs script(1), which opens a terminal for a program');
        }
        $app = Application::idle();
        $log = "$app->directory/log";
        $command = \implode(' ', \array_map(\escapeshellarg(...), Weft::command(['run', '--log=json', $app->file])));
        // It opens a terminal for the command, and closes it when it is killed.
        $terminal = \proc_open(
            ['script', '--quiet', '--command', "exec $command 2>" . \escapeshellarg($log), '/dev/null'],
            [0 => ['pipe', 'r'], 1 => ['file', '/dev/null', 'w'], 2 => ['file', '/dev/null', 'w']],
            $pipes,
        );
        self::assertIsResource($terminal);
        $read = static fn(): string => (string) @\file_get_contents($log);
        try {
            Timing::until(static fn(): bool => \str_contains($read(), 'is ready'), 'a worker is ready');
            \proc_terminate($terminal, \SIGKILL);
            Timing::until(static fn(): bool => \str_contains($read(), 'all workers have ended'), 'it ends with its terminal');

            self::assertStringContainsString('SIGHUP, the terminal is closed: stopping gracefully', $read());
            self::assertStringNotContainsString('reload', $read());
        } finally {
            \proc_terminate($terminal, \SIGKILL);
            \proc_close($terminal);
            if (!\str_contains($read(), 'all workers have ended') && \preg_match('/supervisor (\d+) starts/', $read(), $supervisor) === 1) {
                \posix_kill((int) $supervisor[1], \SIGQUIT);
            }
        }
    }

    public function testAWorkerIsRecycledAfterSoManyRequests(): void
    {
        $app = new Application('async(static function (): void { for ($i = 0; $i < 20; $i++) { Worker::workDone(); delay(0.01); } }); Worker::untilStopped();');
        $run = new Supervised($app->file, ['--max-requests=20']);
        $first = $run->wait('is ready')['pid'];

        self::assertMatchesRegularExpression('/is recycled: \d+ requests done, --max-requests is 20$/', $run->wait('is recycled')['message']);
        $run->wait('is ready');
        $ended = $run->wait('ended');
        self::assertSame([$first, 0], [$ended['pid'], $ended['exit_code']]);
        self::assertStringContainsString(': recycled: ', $ended['message']);
    }

    public function testAWorkerIsRecycledWhenItsMemoryHasGrown(): void
    {
        $app = new Application('$leak = str_repeat("x", 100 << 20); Worker::untilStopped();');
        $run = new Supervised($app->file, ['--max-memory=90M']);

        self::assertMatchesRegularExpression('/is recycled: \d+ bytes of memory, --max-memory is 94371840$/', $run->wait('is recycled')['message']);
        self::assertStringContainsString('exit code 0', $run->wait('ended')['message']);
    }

    public function testALimitBelowTheMemoryOfAWorkerThatIsReadyIsNamedAndRecyclesLessAndLessOften(): void
    {
        $app = new Application('$needed = str_repeat("x", 100 << 20); Worker::untilStopped();');
        $run = new Supervised($app->file, ['--max-memory=90M']);
        $delays = $times = [];
        for ($i = 0; $i < 6; $i++) {
            $warned = $run->wait('raise it above what the application needs');
            self::assertSame(['warning', 90 << 20], [$warned['level'], $warned['limit']]);
            self::assertMatchesRegularExpression('/ has \d{9} bytes of memory [\d.]+ s after it was ready, and --max-memory is 94371840: raise it/', $warned['message']);
            $delays[] = $warned['not_again_within'];
            $times[] = (float) (new \DateTimeImmutable($warned['time']))->format('U.u');
        }

        self::assertEqualsWithDelta([0.1, 0.2, 0.4, 0.8, 1.6, 3.2], $delays, 0.4);
        self::assertGreaterThan(1.4, $times[5] - $times[4]);
    }

    public function testAWorkerIsRecycledWhenItIsOld(): void
    {
        $app = Application::idle();
        $run = new Supervised($app->file, ['--max-age=0.6']);

        self::assertMatchesRegularExpression('/is recycled: \d+\.\d s old, --max-age is 0\.6$/', $run->wait('is recycled')['message']);
        self::assertStringContainsString('exit code 0', $run->wait('ended')['message']);
    }

    public function testARecycledWorkerWhoseSuccessorsDoNotStartStaysAndTheyAreTriedLessAndLessOften(): void
    {
        // The first worker leaves nothing that another could start with.
        $app = new Application('file_put_contents(__FILE__, "<?php syntax error;"); Worker::untilStopped();');
        $run = new Supervised($app->file, ['--max-age=0.5']);
        $old = $run->wait('is ready')['pid'];
        $delays = $times = [];
        for ($i = 0; $i < 6; $i++) {
            $lost = $run->wait('did not start; the running workers stay');
            $delays[] = $lost['not_again_within'];
            $times[] = (float) (new \DateTimeImmutable($lost['time']))->format('U.u');
        }

        self::assertTrue(\posix_kill($old, 0));
        self::assertEqualsWithDelta([0.1, 0.2, 0.4, 0.8, 1.6, 3.2], $delays, 0.4);
        self::assertGreaterThan(1.4, $times[5] - $times[4]);
        $app->write('Worker::untilStopped();');
        $run->wait('is ready');
        self::assertSame($old, $run->wait('ended with exit code 0')['pid']);
    }

    public function testAWorkerThatIsNeverReadyIsKilled(): void
    {
        $app = new Application('signal(SIGUSR2);');
        $run = new Supervised($app->file, ['--start-timeout=0.3', '--max-crashes=1']);

        self::assertSame(1, $run->end());
        self::assertCount(1, $run->all('was not ready within 0.3 s and is killed'));
        self::assertMatchesRegularExpression('/ ended with SIGKILL after \d+\.\d+ s: start timeout$/', $run->all(' ended with ')[0]);
        self::assertCount(1, $run->all('is started again'), $run->messages());
    }

    private static function position(Supervised $run, string $text, int $pid): int
    {
        foreach ($run->log as $position => $line) {
            if (\str_contains($line['message'], $text) && $line['pid'] === $pid) {
                return $position;
            }
        }
        self::fail("No \"$text\" of $pid in\n" . $run->messages());
    }

    /** @return list<int> */
    private static function readyPositions(Supervised $run, int $worker): array
    {
        $isReady = static fn(array $line): bool => \str_contains($line['message'], 'is ready') && $line['worker'] === $worker;

        return \array_keys(\array_filter($run->log, $isReady));
    }
}
