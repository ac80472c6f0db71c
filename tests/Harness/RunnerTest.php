<?php

declare(strict_types=1);

namespace Weft\Tests\Harness;

use PHPUnit\Framework\TestCase;

/** What `scripts/test` makes of tests that fail, crash, hang and leave things behind. */
final class RunnerTest extends TestCase
{
    private string $directory;
    /** @var list<string> */
    private array $printed = [];
    private int $server = 0;

    protected function setUp(): void
    {
        $this->directory = \sys_get_temp_dir() . '/weft-harness-' . \bin2hex(\random_bytes(4));
        \mkdir("{$this->directory}/scratch", 0o755, true);
    }

    protected function tearDown(): void
    {
        self::runs($this->server) && \posix_kill($this->server, \SIGKILL);
        Lane::remove($this->directory);
    }

    public function testAServerThatATestHasKilledIsReportedOnceAndTheTestsAfterItPass(): void
    {
        \getenv('WEFT_TEST_SERVERS') ?: self::markTestSkipped('a server of scripts/test is killed: run this by scripts/test');
        $result = $this->runOf('ServerKilled');

        self::assertSame('3 passed, 2 failed, 0 skipped', $result->summary(), (string) \json_encode($result->failures));
        $killed = Fixtures\ServerKilled::class . '::testOneThatKillsTheServer';
        self::assertStringContainsString('before the server was started again', $result->failures[$killed]);
        self::assertCount(1, \preg_grep('/MariaDB or MySQL was down before .*testOneThatNeedsTheServer.*; the test before it was .*testOneThatKillsTheServer$/', \array_keys($result->failures)) ?: []);
    }

    public function testEachTestIsCountedOnceAndAFailureHasItsMessage(): void
    {
        $result = $this->runOf('Varied');

        self::assertSame('1 passed, 1 failed, 1 skipped', $result->summary());
        self::assertStringContainsString('the second does not hold', (string) \current($result->failures));
        self::assertSame([[Fixtures\Varied::class . '::testOneThatIsSkipped', 'its tool is missing']], $result->skips);
        self::assertStringContainsString('FAILED', $this->printed[0]);
    }

    public function testTestsOfAClassThatIsSkippedAsAWholeAreCountedOneByOne(): void
    {
        $job = new PhpJob(\dirname(__DIR__, 2), ['tests/Harness/Fixtures/Missing.php', 'tests/Harness/Fixtures/Varied.php'], 1.0);

        $result = $this->runner([$this->lane(1)])->run([$job]);

        self::assertSame('1 passed, 1 failed, 3 skipped', $result->summary());
        self::assertContains([Fixtures\Missing::class . '::testAnother', 'their tool is missing'], $result->skips);
        self::assertCount(3, $result->skips);
        self::assertSame('0 passed, 0 failed, 2 skipped', $this->runOf('Missing')->summary());
    }

    public function testACrashOfPhpUnitIsAFailureThatNamesTheTest(): void
    {
        $result = $this->runOf('Crashing');

        self::assertSame('0 passed, 1 failed, 0 skipped', $result->summary());
        self::assertStringContainsString('exit code 137 before its report was written, in ' . Fixtures\Crashing::class . '::testOneThatEndsItsProcess', (string) \key($result->failures));
    }

    public function testAJobThatHangsIsEndedAtItsDeadlineAndTheTestIsNamed(): void
    {
        // On a busy machine three seconds may pass before the test begins.
        for ($seconds = 3; \in_array($seconds, [3, 9, 27, 81], true); $seconds *= 3) {
            $result = $this->runOf('Hanging', (float) $seconds);
            self::assertSame('0 passed, 1 failed, 0 skipped', $result->summary());
            $message = (string) \key($result->failures);
            self::assertStringContainsString("ended after its deadline of $seconds s", $message);
            if (\str_contains($message, ' s, in ')) {
                break;
            }
        }

        self::assertStringEndsWith(' s, in ' . Fixtures\Hanging::class . '::testOneThatNeverEnds', $message);
    }

    public function testAProcessAndAFileThatAreLeftBehindAreFailuresAndAreRemoved(): void
    {
        $result = $this->runOf('Untidy');

        self::assertSame('1 passed, 2 failed, 0 skipped', $result->summary());
        self::assertSame(['sleep 600', 'left-behind'], \array_values($result->failures));
        self::assertSame([], \array_diff((array) \scandir("{$this->directory}/scratch"), ['.', '..']));
    }

    public function testJobsShareTheLanesTheLongestFirst(): void
    {
        $jobs = [];
        foreach ([1.0, 3.0, 2.0] as $expected) {
            $jobs[] = new RustJob("program $expected", '/', ['echo', 'test result: ok. 1 passed; 0 failed; 1 ignored; 0 measured'], $expected);
        }
        $result = $this->runner([$this->lane(1)])->run($jobs);

        self::assertSame('3 passed, 0 failed, 3 skipped', $result->summary());
        self::assertSame(['program 3', 'program 2', 'program 1'], \array_map(static fn (string $line): string => (string) \preg_replace('/.*(program \d).*/', '$1', $line), $this->printed));
    }

    public function testARustProgramThatCrashesIsAFailure(): void
    {
        $job = new RustJob('program', '/', ['sh', '-c', 'echo test a ... ok; exit 101'], 1.0);

        self::assertSame('0 passed, 1 failed, 0 skipped', $this->runner([$this->lane(1)])->run([$job])->summary());
    }

    public function testASignalEndsTheStartOfTheServersAndStopsThem(): void
    {
        $program = $this->command();

        $program->end();

        self::assertSame(130, $program->code(), Output::tail("{$this->directory}/output"));
        self::assertStringContainsString('interrupted', Output::tail("{$this->directory}/output"));
        self::assertFalse(self::runs($this->server));
        self::assertSame("up\ndown\n", \file_get_contents("{$this->directory}/var/calls"));
    }

    public function testServersOfARunThatWasKilledDoNotHoldItsLock(): void
    {
        $program = $this->command();
        \posix_kill($program->pid, \SIGKILL);
        while ($program->code() === null) {
            \usleep(10_000);
        }

        $lock = \fopen("{$this->directory}/var/test.lock", 'c');
        $isFree = \flock($lock, \LOCK_EX | \LOCK_NB);

        self::assertTrue(self::runs($this->server));
        self::assertTrue($isFree);
    }

    private static function runs(int $server): bool
    {
        return \str_contains((string) @\file_get_contents("/proc/$server/cmdline"), 'sleep');
    }

    /** `scripts/test` while it starts its server. */
    private function command(): Process
    {
        \mkdir("{$this->directory}/scripts");
        \file_put_contents("{$this->directory}/scripts/services", <<<'SH'
            #!/bin/bash
            # Stands for the real one: its server never answers, so `up` never ends, and `down` waits for it.
            cd "$(dirname "$0")/../var"
            exec 9>lock && flock 9
            echo "$1" >>calls
            if [[ $1 == up ]]; then sleep 600 9>&- & echo $! >new && mv new server && wait; fi
            kill "$(cat server)"
            SH);
        \chmod("{$this->directory}/scripts/services", 0o755);
        \file_put_contents("{$this->directory}/XTest.php", '');
        $load = 'foreach (["Command", "Lane", "Process", "Servers", "Runner", "Result", "Catalogue", "Times", "Job", "PhpJob", "Output", "Finished"] as $class) { require ' . \var_export(__DIR__, true) . ' . "/$class.php"; }';
        $run = $load . 'exit((new Weft\Tests\Harness\Command($argv[1]))->run([$argv[1] . "/XTest.php"]));';
        $environment = ['WEFT_VAR' => "{$this->directory}/var", 'WEFT_TEST_LANES' => '1', 'TMPDIR' => $this->directory];
        $program = new Process([\PHP_BINARY, '-r', $run, $this->directory], "{$this->directory}/output", $environment);
        $deadline = \hrtime(true) / 1e9 + 60.0;
        while (!\is_file("{$this->directory}/var/server")) {
            self::assertNull($program->code(), Output::tail("{$this->directory}/output"));
            self::assertLessThan($deadline, \hrtime(true) / 1e9, 'the server was not started');
            \usleep(10_000);
        }

        $this->server = (int) \file_get_contents("{$this->directory}/var/server");

        return $program;
    }

    private function runOf(string $fixture, ?float $deadline = null): Result
    {
        $job = new PhpJob(\dirname(__DIR__, 2), ["tests/Harness/Fixtures/$fixture.php"], 1.0, deadline: $deadline);

        return $this->runner([$this->lane(1)])->run([$job]);
    }

    /** @param list<Lane> $lanes */
    private function runner(array $lanes): Runner
    {
        return new Runner($lanes, function (string $line): void {
            $this->printed[] = $line;
        });
    }

    private function lane(int $number): Lane
    {
        return new Lane(\dirname(__DIR__, 2), $number, $this->directory, "{$this->directory}/scratch", null);
    }
}
