<?php

declare(strict_types=1);

namespace Weft\Tests\Cli;

use PHPUnit\Framework\TestCase;
use Weft\Tests\Timing;

final class StopTest extends TestCase
{
    private const TRIES = 6;
    private const DRAINS = 'async(fn() => delay(600.0)); Worker::untilStopped();';

    public function testADrainingWorkerListsItsRunningTasksAndFinishesThem(): void
    {
        $app = new Application('async(Handler::waitsFor(...), "go"); Worker::untilStopped();');
        $run = new Supervised($app->file);
        $run->wait('is ready');
        $run->signal(\SIGTERM);

        self::assertNotSame([], $run->waitForMatch('/drains, still running:\n#\d+ .* waits for .*app\.php:\d+/'));
        \touch("$app->directory/go");
        self::assertSame(0, $run->end());
    }

    public function testASecondSignalKills(): void
    {
        $app = new Application(self::DRAINS);
        $run = new Supervised($app->file);
        $run->wait('is ready');
        $run->signal(\SIGTERM);
        $run->wait('drains');
        $run->signal(\SIGTERM);

        self::assertStringContainsString('ended with SIGKILL', $run->wait('ended')['message']);
        self::assertSame(1, $run->end());
    }

    /** `timeout` of GNU coreutils sends its signal to the command and then to the process group, which is the command's as well. */
    public function testASignalThatComesTwiceAtOnceStopsGracefully(): void
    {
        for ($try = 0, $code = null; $code !== 0 && $try < self::TRIES; $try++) {
            $app = new Application('async(Handler::waitsFor(...), "go"); Worker::untilStopped();');
            $run = new Supervised($app->file);
            $run->wait('is ready');
            $run->signal(\SIGTERM);
            // Later than the handling of the first, or the kernel makes one of both; a busy machine may make it much later.
            $run->wait('stopping gracefully');
            $run->signal(\SIGTERM);
            try {
                $run->wait('drains');
                \touch("$app->directory/go");
            } catch (\RuntimeException) {
                // The workers were killed.
            }
            $code = $run->end();
        }

        self::assertSame(0, $code, $run->messages());
    }

    public function testADrainThatTakesTooLongIsKilledWithAListOfWhatStillRan(): void
    {
        $app = new Application(self::DRAINS);
        $run = new Supervised($app->file, ['--drain-timeout=0.5']);
        $run->wait('is ready');
        $run->signal(\SIGTERM);

        self::assertMatchesRegularExpression('/did not end within 0\.5 s and is killed, still running:\n#\d+ /', $run->wait('is killed')['message']);
        self::assertSame(1, $run->end());
    }

    public function testAWorkerThatCrashesBySignalWhileItStopsIsAFailureOfTheSupervisor(): void
    {
        $app = new Application('Worker::untilStopped(); posix_kill(getmypid(), SIGSEGV);');
        $run = new Supervised($app->file);
        $run->wait('is ready');
        $run->signal(\SIGTERM);

        self::assertStringContainsString('ended with SIGSEGV', $run->wait('ended with')['message']);
        self::assertSame(1, $run->end(), $run->messages());
    }

    public function testAWorkerThatIsStoppedBeforeItIsReadyIsNoFailureOfTheSupervisor(): void
    {
        $app = new Application('touch(__DIR__ . "/runs"); delay(600.0);');
        $run = new Supervised($app->file);
        Timing::until(static fn(): bool => \is_file("$app->directory/runs"), 'the worker runs');
        $run->signal(\SIGTERM);

        $line = $run->wait('ended with');
        self::assertStringContainsString('ended with SIGTERM', $line['message']);
        self::assertSame('info', $line['level']);
        self::assertSame(0, $run->end(), $run->messages());
    }

    /** As where a control group is stopped: all of its processes get the signal, and the workers the supervisor's as well. */
    public function testAWorkerThatDrainsIgnoresFurtherSignalsToStop(): void
    {
        $app = new Application('async(Handler::waitsFor(...), "go"); Worker::untilStopped();');
        $run = new Supervised($app->file);
        $worker = $run->wait('is ready')['pid'];
        \posix_kill($worker, \SIGINT);
        $run->wait('drains');
        \posix_kill($worker, \SIGINT);
        \posix_kill($worker, \SIGTERM);
        $run->signal(\SIGTERM);
        $run->wait('drains');
        \touch("$app->directory/go");

        self::assertStringContainsString('ended with exit code 0', $run->wait('ended with')['message']);
        self::assertSame(0, $run->end(), $run->messages());
    }

    public function testAWorkerThatFailsWhileItStopsIsAFailureOfTheSupervisor(): void
    {
        $app = new Application('Worker::untilStopped(); throw new DomainException("the queue is not empty");');
        $run = new Supervised($app->file);
        $run->wait('is ready');
        $run->signal(\SIGTERM);

        self::assertStringContainsString('ended with exit code 255', $run->wait('ended with')['message']);
        self::assertSame(1, $run->end(), $run->messages());
    }

    public function testAWorkerThatFailedAndWasReplacedIsNoFailureOfTheSupervisor(): void
    {
        $app = new Application('if (!is_file(__DIR__ . "/once")) { touch(__DIR__ . "/once"); throw new DomainException("not yet"); } Worker::untilStopped();');
        $run = new Supervised($app->file);
        $run->wait('ended with exit code 255');
        $run->wait('is ready');
        $run->signal(\SIGTERM);

        self::assertSame(0, $run->end(), $run->messages());
    }

    public function testWorkersEndWhenTheirSupervisorIsKilled(): void
    {
        $app = Application::idle();
        $run = new Supervised($app->file);
        $worker = $run->wait('is ready')['pid'];
        $run->signal(\SIGKILL);
        $run->end();

        $deadline = \hrtime(true) / 1e9 + 60;
        while (\posix_kill($worker, 0) && \hrtime(true) / 1e9 < $deadline) {
            \usleep(5000);
        }
        self::assertFalse(\posix_kill($worker, 0));
    }

    /** The kernel sends no signal at the death of the parent to a program that has gained capabilities. */
    public function testWorkersWithFileCapabilitiesEndWhenTheirSupervisorIsKilled(): void
    {
        $app = Application::idle();
        $php = "$app->directory/php";
        \copy(\PHP_BINARY, $php);
        \chmod($php, 0o755);
        \exec('setcap cap_net_bind_service=+ep ' . \escapeshellarg($php) . ' 2>/dev/null', result_code: $refused);
        if ($refused !== 0 || \posix_getuid() !== 0) {
            self::markTestSkipped('Capabilities of a file are set by root');
        }
        $other = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', 'sh', '-c', 'shift && exec "$0" "$@"', $php];
        $run = new Supervised($app->file, through: $other);
        $worker = $run->wait('is ready')['pid'];
        $run->signal(\SIGKILL);
        $run->end();

        Timing::until(static fn(): bool => !\posix_kill($worker, 0), 'the worker has ended');
    }

    public function testAStalePidFileIsTakenOverAndRemovedAtTheEnd(): void
    {
        $app = Application::idle();
        $file = "$app->directory/weft.pid";
        \file_put_contents($file, "1\n");
        $run = new Supervised($app->file, ["--pid-file=$file"]);
        $run->wait('is ready');

        self::assertSame($run->pid() . "\n", \file_get_contents($file));
        $run->signal(\SIGTERM);
        self::assertSame(0, $run->end());
        self::assertFileDoesNotExist($file);
    }

    public function testAPidFileInUseIsRefused(): void
    {
        $app = Application::idle();
        $file = "$app->directory/weft.pid";
        $run = new Supervised($app->file, ["--pid-file=$file"]);
        $run->wait('is ready');
        $second = Weft::run(['run', "--pid-file=$file", $app->file]);

        self::assertSame(1, $second->exitCode);
        self::assertSame("weft run: PID file $file is in use by a running supervisor with pid {$run->pid()}\n", $second->errors);
        self::assertFileExists($file);
        $run->signal(\SIGTERM);
        $run->end();
    }
}
