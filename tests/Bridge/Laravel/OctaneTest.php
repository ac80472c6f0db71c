<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Laravel;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Tests\Bridge\Symfony\Browser;
use Weft\Tests\Extension;
use Weft\Tests\Timing;

/** Applications that Octane's worker prepares: `octane/` stands in for it where Octane is not installed. */
final class OctaneTest extends TestCase
{
    use RequiresLaravel;
    use ServesState;

    private Browser $browser;

    protected function setUp(): void
    {
        $this->requireLaravel();
        $this->serveState(['OCTANE' => '1', 'APPLICATIONS' => '1']);
        \touch("$this->directory/app.db");
        $this->browser = new Browser($this->address);
    }

    public function testAStreamedResponseIsMadeInTheApplicationOfItsRequest(): void
    {
        foreach ([1, 2] as $number) {
            self::assertSame("first of $number;second of $number;", $this->browser->get("/streamed?n=$number")->body, $this->server->other);
        }
    }

    public function testARequestIsTerminatedAfterItsResponse(): void
    {
        self::assertSame('printed and answered', $this->browser->get('/terminated?n=1')->body);
        self::assertFileDoesNotExist("$this->directory/terminated-1");

        \touch("$this->directory/answered");
        Timing::until(fn(): bool => \file_exists("$this->directory/terminated-1"), 'the request is terminated');
        self::assertSame('first of 2;second of 2;', $this->browser->get('/streamed?n=2')->body);
    }

    public function testACancelledRequestIsNoErrorOfTheApplication(): void
    {
        $client = $this->browser->send('GET', '/wait');
        Timing::until(fn(): bool => \file_exists("$this->directory/waiting"), 'the request begins');
        \fclose($client);
        Timing::until(fn(): bool => \file_exists("$this->directory/ended"), 'the request is cancelled');

        self::assertSame(500, $this->browser->get('/fail')->status);
        $this->server->waitForOutput('on purpose');
        self::assertStringNotContainsString('ancelled', $this->server->other . \implode("\n", \array_column($this->server->log, 'message')));
    }

    /** @return iterable<string, array{string, string}> */
    public static function leavings(): iterable
    {
        yield 'by exit()' => ['/leave', 'left'];
        yield 'by a request that ends' => ['/begin', 'begun'];
    }

    /** @dataProvider leavings */
    #[DataProvider('leavings')]
    public function testATransactionThatARequestLeavesIsRolledBack(string $path, string $answer): void
    {
        self::assertSame($answer, $this->browser->get($path)->body, $this->server->other);

        $database = new \PDO("sqlite:$this->directory/app.db", options: [\PDO::ATTR_TIMEOUT => 0]);
        Timing::until(static function () use ($database): bool {
            try {
                $database->exec('BEGIN IMMEDIATE');

                return true;
            } catch (\PDOException) {
                return false;
            }
        }, 'nobody else writes');
        self::assertSame([], $database->query("SELECT name FROM sqlite_master WHERE name = 'leavings'")->fetchAll());
        $database->exec('ROLLBACK');
        self::assertSame('first of 3;second of 3;', $this->browser->get('/streamed?n=3')->body);
    }

    public function testTheProcessThatHasThePidFileIsTheServerAndNoOtherGetsItsSignals(): void
    {
        \mkdir("$this->directory/logs");
        // It has the pid of a supervisor that was killed.
        $other = \proc_open(['sleep', '600'], [], $pipes);
        \file_put_contents("$this->directory/logs/octane-weft.pid", \proc_get_status($other)['pid'] . "\n");
        $answer = $this->inspect();
        $isRunning = \proc_get_status($other)['running'];
        \proc_terminate($other, \SIGKILL);
        \proc_close($other);
        self::assertSame('no server, stopped nothing', $answer);
        self::assertTrue($isRunning);

        $program = <<<'PHP'
            require $argv[1];
            pcntl_sigprocmask(SIG_BLOCK, $signals = [SIGHUP, SIGTERM]);
            $file = Weft\Workers\Internal\PidFile::take($argv[2]);
            echo "ready\n", pcntl_sigtimedwait($signals, $info, 60), ' ', pcntl_sigtimedwait($signals, $info, 60);
            PHP;
        $command = [\PHP_BINARY, '-d', 'extension=' . Extension::library(), '-r', $program, '--', \dirname(__DIR__, 3) . '/autoload.php', "$this->directory/logs/octane-weft.pid"];
        $server = \proc_open($command, [1 => ['pipe', 'w']], $pipes);
        self::assertSame("ready\n", \fgets($pipes[1]));
        self::assertSame('a server, stopped it', $this->inspect());
        self::assertSame(\SIGHUP . ' ' . \SIGTERM, \stream_get_contents($pipes[1]));
        \proc_close($server);
    }

    /** Asks for the server, reloads and stops it. */
    private function inspect(): string
    {
        $program = <<<'PHP'
            require "$argv[1]/../../../examples/laravel/autoload.php";
            class_exists(Laravel\Octane\Worker::class) || require "$argv[1]/octane/octane.php";
            (require "$argv[1]/state/bootstrap/app.php")->make(Illuminate\Contracts\Console\Kernel::class)->bootstrap();
            $inspector = new Weft\Bridge\Laravel\Octane\ServerProcessInspector();
            echo $inspector->serverIsRunning() ? 'a server, ' : 'no server, ';
            $inspector->reloadServer();
            echo $inspector->stopServer() ? 'stopped it' : 'stopped nothing';
            PHP;
        $environment = ['APP_VAR' => $this->directory, 'APP_SERVICES_CACHE' => "$this->directory/services.php", 'APP_PACKAGES_CACHE' => "$this->directory/packages.php"];
        $process = \proc_open([\PHP_BINARY, '-r', $program, '--', __DIR__], [1 => ['pipe', 'w']], $pipes, null, $environment + \getenv());
        $answer = (string) \stream_get_contents($pipes[1]);
        \proc_close($process);

        return $answer;
    }
}
