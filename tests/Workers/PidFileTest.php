<?php

declare(strict_types=1);

namespace Weft\Tests\Workers;

use PHPUnit\Framework\TestCase;
use Weft\Tests\Extension;
use Weft\Workers\Internal\PidFile;
use Weft\Workers\SupervisorException;

final class PidFileTest extends TestCase
{
    private string $directory;

    protected function setUp(): void
    {
        $this->directory = sys_get_temp_dir() . '/weft-pid-' . bin2hex(random_bytes(8));
        mkdir($this->directory, 0o700);
    }

    protected function tearDown(): void
    {
        foreach (array_diff((array) scandir($this->directory), ['.', '..']) as $name) {
            is_dir("$this->directory/$name") ? rmdir("$this->directory/$name") : unlink("$this->directory/$name");
        }
        rmdir($this->directory);
    }

    public function testAFileIsMadeHeldAndRemoved(): void
    {
        $file = PidFile::take("$this->directory/pid");

        self::assertSame(getmypid() . "\n", file_get_contents("$this->directory/pid"));
        $this->assertRefused('is in use by a running supervisor with pid ' . getmypid());
        $file->remove();
        self::assertFileDoesNotExist("$this->directory/pid");
    }

    public function testThePidFileOfAKilledSupervisorIsTakenOver(): void
    {
        file_put_contents("$this->directory/pid", "12345678901234567890\n");

        $file = PidFile::take("$this->directory/pid");

        self::assertSame(getmypid() . "\n", file_get_contents("$this->directory/pid"));
        $file->remove();
    }

    public function testTheHolderIsTheProcessThatHasTakenTheFileWhateverPidIsInIt(): void
    {
        self::assertNull(PidFile::holder("$this->directory/pid"));
        foreach (['', '0', '-1', (string) getmypid(), '12345678901234567890'] as $pid) {
            file_put_contents("$this->directory/pid", "$pid\n");
            self::assertNull(PidFile::holder("$this->directory/pid"), $pid);
        }

        $file = PidFile::take("$this->directory/pid");

        self::assertSame(getmypid(), PidFile::holder("$this->directory/pid"));
        $file->remove();
        self::assertNull(PidFile::holder("$this->directory/pid"));
    }

    public function testAProcessThatOutlivesItsSupervisorDoesNotHoldTheFile(): void
    {
        $file = PidFile::take("$this->directory/pid");
        $child = proc_open(['sh', '-c', 'echo started; exec sleep 600'], [1 => ['pipe', 'w']], $pipes);
        try {
            self::assertSame("started\n", fgets($pipes[1]));
            unset($file);
            PidFile::take("$this->directory/pid")->remove();
            self::assertFileDoesNotExist("$this->directory/pid");
        } finally {
            proc_terminate($child, SIGKILL);
            proc_close($child);
        }
    }

    public function testALinkIsNotFollowed(): void
    {
        file_put_contents("$this->directory/target", 'precious');
        symlink("$this->directory/target", "$this->directory/pid");

        $this->assertRefused('is a symbolic link');
        self::assertSame('precious', file_get_contents("$this->directory/target"));
    }

    public function testALinkToNothingMakesNothing(): void
    {
        symlink("$this->directory/target", "$this->directory/pid");

        $this->assertRefused('is a symbolic link');
        self::assertFileDoesNotExist("$this->directory/target");
    }

    public function testASecondNameOfAFileIsNotWrittenTo(): void
    {
        file_put_contents("$this->directory/target", 'precious');
        link("$this->directory/target", "$this->directory/pid");

        $this->assertRefused('is a hard link');
        self::assertSame('precious', file_get_contents("$this->directory/target"));
    }

    public function testADirectoryIsRefused(): void
    {
        mkdir("$this->directory/pid");

        $this->assertRefused('is not a regular file');
    }

    public function testAFileOfAnotherUserIsNotWrittenTo(): void
    {
        file_put_contents("$this->directory/pid", 'precious');
        if (!@chown("$this->directory/pid", 12345)) {
            self::markTestSkipped('only root can give a file away');
        }

        $this->assertRefused('is owned by user 12345');
        self::assertSame('precious', file_get_contents("$this->directory/pid"));
    }

    public function testADirectoryThatIsNotThereIsNamed(): void
    {
        $this->expectException(SupervisorException::class);
        $this->expectExceptionMessage("cannot write PID file $this->directory/nowhere/pid: ");

        PidFile::take("$this->directory/nowhere/pid");
    }

    /** One that had opened the file before another removed it must not believe to hold what is there now. */
    public function testOneOfManySupervisorsHoldsItAtATime(): void
    {
        $program = <<<'PHP'
            [, $autoload, $directory] = $argv;
            require $autoload;
            for ($taken = 0, $tries = 0; $taken < 80 && $tries < 200_000; $tries++) {
                try {
                    $file = Weft\Workers\Internal\PidFile::take("$directory/pid");
                } catch (Weft\Workers\SupervisorException) {
                    continue;
                }
                mkdir("$directory/held") || exit(1);
                $taken++;
                rmdir("$directory/held");
                $file->remove();
            }
            PHP;
        $command = [PHP_BINARY, '-n', '-d', 'extension=' . Extension::library(), '-r', $program, '--', \dirname(__DIR__, 2) . '/autoload.php', $this->directory];
        $processes = array_map(static fn() => proc_open($command, [], $pipes), range(1, 3));

        self::assertSame([0, 0, 0], array_map(proc_close(...), $processes));
    }

    private function assertRefused(string $why): void
    {
        try {
            PidFile::take("$this->directory/pid");
            self::fail('it was taken');
        } catch (SupervisorException $failed) {
            self::assertStringContainsString($why, $failed->getMessage());
        }
    }
}
