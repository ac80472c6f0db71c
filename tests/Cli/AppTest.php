<?php

declare(strict_types=1);

namespace Weft\Tests\Cli;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Bench\HttpAnswer;
use Weft\Bench\Port;
use Weft\Cli\RunCommand;
use Weft\Tests\Extension;
use Weft\Workers\Internal\RunOptions;

require_once __DIR__ . '/../../bench/autoload.php';

/** An application with a server, in workers. */
final class AppTest extends TestCase
{
    private const ROUTES = <<<'PHP'
        $routes->get("/hello/{name}", static fn(string $name) => Response::text("hello $name"));
        $routes->get("/pid", static fn() => Response::text((string) getmypid()));
        $routes->get("/eat", static function () { ini_set("memory_limit", "32M"); $eaten = []; while (true) { $eaten[] = str_repeat("x", 100_000); } });
        $routes->get("/exit", static function () { exit(0); });
        $routes->get("/slow/{id}", static function () { fwrite(STDERR, "working\n"); while (!is_file(__DIR__ . "/go")) { delay(0.07); } return Response::text(""); });
        $routes->get("/print", static function () { echo "loud"; return Response::text(""); });
        PHP;

    private Application $app;

    protected function setUp(): void
    {
        $this->app = new Application('');
    }

    public function testAddressesAreLoggedOnceAndWorkersLogInTheFormatOfTheSupervisor(): void
    {
        $run = $this->start('--workers=2');
        $address = self::address($run);
        $run->wait('is ready');
        $run->wait('is ready');

        self::get("http://$address/print");
        $line = $run->wait('Discarded output');
        self::assertSame(['warning', 'loud'], [$line['level'], $line['output']]);
        self::assertStringContainsString('GET /print from 127.0.0.1:', $line['request']);
        $run->signal(\SIGTERM);
        self::assertSame(0, $run->end());
        self::assertCount(1, $run->all('listening on'), $run->messages());
        self::assertSame('', $run->other);
    }

    public function testARequestOfAnotherWebServerIsToldThatItIsNoPlaceForAnApp(): void
    {
        $script = \tempnam(\sys_get_temp_dir(), 'weft');
        \file_put_contents($script, \sprintf('<?php require %s; try { (new Weft\App())->run(); } catch (Error $error) { echo $error->getMessage(); }', \var_export(\dirname(__DIR__, 2) . '/autoload.php', true)));
        $address = '127.0.0.1:' . Port::free();
        $server = \proc_open([\PHP_BINARY, '-d', 'extension=' . Extension::library(), '-S', $address, $script], [2 => ['file', '/dev/null', 'w']], $pipes);
        try {
            $deadline = \microtime(true) + 60;
            while (($answer = @\file_get_contents("http://$address/")) === false && \microtime(true) < $deadline) {
                \usleep(20_000);
            }
            self::assertSame('App::run() serves until it is stopped, and this is one request to cli-server: start the program with `weft run` or `php`', $answer);
        } finally {
            \proc_terminate($server, \SIGKILL);
            \proc_close($server);
            \unlink($script);
        }
    }

    /** @dataProvider failures */
    #[DataProvider('failures')]
    public function testTheFailureOfAWorkerIsALineOfTheLog(string $failing): void
    {
        $this->write($failing);
        $run = new Supervised($this->app->file, ['--max-crashes=1']);
        $line = $run->wait('The application failed: DomainException: no license at ');

        self::assertSame('critical', $line['level']);
        self::assertStringContainsString('DomainException', \json_encode($line['exception'], \JSON_THROW_ON_ERROR));
        // Its successor may have been started, and ended, before it has gone.
        $run->wait('ended with exit code 255');
        self::assertSame(1, $run->end());
        self::assertSame('', $run->other);
    }

    /** @return iterable<string, array{string}> code after the application is made */
    public static function failures(): iterable
    {
        yield 'while it runs' => ['$app->task("license", static function () { throw new DomainException("no license"); }, Weft\RestartPolicy::never());'];
        yield 'before it runs' => ['throw new DomainException("no license");'];
    }

    public function testAnExceptionHandlerOfTheApplicationIsKept(): void
    {
        \file_put_contents($this->app->file, \sprintf('<?php require %s; set_exception_handler(static function () { fwrite(STDERR, "mine\n"); exit(1); }); $app = new Weft\App(); throw new Error("x");', \var_export(\dirname(__DIR__, 2) . '/autoload.php', true)));
        $run = new Supervised($this->app->file, ['--max-crashes=1']);

        self::assertStringContainsString('ended with exit code 1', $run->wait('ended with')['message']);
        self::assertSame(1, $run->end());
        self::assertSame("mine\n", $run->other);
    }

    public function testAWorkerThatRunsOutOfMemoryIsReplacedAndTheOthersGoOn(): void
    {
        $run = $this->start('--workers=2');
        $address = self::address($run);
        $run->wait('is ready');
        $run->wait('is ready');

        self::assertSame(500, self::get("http://$address/eat")[0]);
        self::assertMatchesRegularExpression('~GET /eat from \S+ failed: Allowed memory size of \d+ bytes exhausted~', $run->wait('the process ends')['message']);
        // The process has gone by then: until that moment it may still have accepted a connection.
        $run->wait('is started again');
        self::assertSame([200, 'hello you'], self::get("http://$address/hello/you"));
        $run->wait('is ready');
        self::assertSame([200, 'hello me'], self::get("http://$address/hello/me"));
    }

    public function testAWorkerWhoseHandlerCallsExitIsReplaced(): void
    {
        $run = $this->start('--workers=1');
        $address = self::address($run);
        $run->wait('is ready');
        $before = self::get("http://$address/pid")[1];

        self::assertSame(500, self::get("http://$address/exit")[0]);
        $run->wait('GET /exit from');
        $run->wait('is ready');

        self::assertNotSame($before, self::get("http://$address/pid")[1]);
    }

    public function testTheDrainReportNamesRequests(): void
    {
        $run = $this->start('--workers=1');
        $address = self::address($run);
        $run->wait('is ready');
        $client = \stream_socket_client("tcp://$address");
        \fwrite($client, "GET /slow/7 HTTP/1.1\r\nHost: a\r\n\r\n");
        $run->waitForOutput('working');
        $run->signal(\SIGTERM);

        self::assertNotSame([], $run->waitForMatch('~drains, still running:\n(?:.*\n)*.*GET /slow/\{id\} from 127\.0\.0\.1:\d+ \(\d+\.\d{3} s old, .* waits for Weft\\\\delay\(\)~'));
        \touch("{$this->app->directory}/go");
        self::assertSame(0, $run->end());
    }

    public function testMetricsHaveTheLatenciesOfRoutesAndTheTasks(): void
    {
        $run = $this->start('--workers=1', '--metrics=127.0.0.1:0');
        $metrics = $run->wait('metrics')['address'];
        $address = self::address($run);
        $run->wait('is ready');
        self::get("http://$address/hello/you");
        self::get("http://$address/hello/me");
        $text = self::get("http://$metrics/metrics")[1];

        self::assertStringContainsString('weft_http_request_duration_seconds_count{worker="1",method="GET",route="/hello/{name}"} 2', $text);
        self::assertStringContainsString('weft_http_request_duration_seconds_count{worker="1",method="GET",route="/pid"} 0', $text);
        self::assertMatchesRegularExpression('/^weft_tasks\{worker="1"\} [1-9]/m', $text);
        self::assertMatchesRegularExpression('/^weft_fibers\{worker="1"\} [1-9]/m', $text);
    }

    public function testAPlainProcessHasAnEndpointOfItsOwn(): void
    {
        $this->write('$app->metrics("127.0.0.1:0");');
        $process = \proc_open(
            [\PHP_BINARY, '-d', 'extension=' . Extension::library(), $this->app->file],
            [0 => ['file', '/dev/null', 'r'], 1 => ['file', '/dev/null', 'w'], 2 => ['pipe', 'w']],
            $pipes,
        );
        try {
            \stream_set_timeout($pipes[2], 60);
            $metrics = self::matched('~http://(\S+)/metrics~', (string) \fgets($pipes[2]));
            $address = self::matched('~listening on (\S+)~', (string) \fgets($pipes[2]));
            self::get("http://$address/hello/you");

            self::assertStringContainsString('weft_http_request_duration_seconds_count{method="GET",route="/hello/{name}"} 1', self::get("http://$metrics/metrics")[1]);
            self::assertSame(200, self::get("http://$metrics/ready")[0]);
            self::assertSame([200, "the event loop turned 0.0 s ago\n"], self::get("http://$metrics/live"));
        } finally {
            \proc_terminate($process);
            \proc_close($process);
        }
    }

    public function testAHandlerThatOutlivesTheGraceIsCancelledAndItsMessageStaysInTheQueue(): void
    {
        $database = "{$this->app->directory}/bus.db";
        $autoload = \var_export(\dirname(__DIR__, 2) . '/autoload.php', true);
        \file_put_contents($this->app->file, <<<PHP
            <?php
            require $autoload;
            final class Work {}
            final class Works
            {
                #[Weft\\Bus\\CommandHandler]
                public function work(Work \$work): void
                {
                    fwrite(STDERR, "working\\n");
                    try { Weft\\delay(600.0); } finally { fwrite(STDERR, "cancelled\\n"); }
                }
            }
            \$bus = Weft\\Bus\\Bus::connect('sqlite:$database')->handlers(new Works());
            \$bus->queue('works')->declare();
            if ((\$argv[1] ?? '') === 'count') {
                echo \$bus->queue('works')->depth(), ' ', \$bus->queue('works')->deadLetters()->count();
                exit;
            }
            \$bus->send(new Work());
            (new Weft\\App(grace: 0.1))->consume(\$bus, 'works')->run();
            PHP);
        $command = [\PHP_BINARY, '-d', 'extension=' . Extension::library(), $this->app->file];
        $process = \proc_open($command, [0 => ['file', '/dev/null', 'r'], 1 => ['file', '/dev/null', 'w'], 2 => ['pipe', 'w']], $pipes);
        try {
            \stream_set_timeout($pipes[2], 60);
            do {
                $line = \fgets($pipes[2]);
            } while ($line !== "working\n" && $line !== false);
            \proc_terminate($process);
            $told = (string) \stream_get_contents($pipes[2]);
        } finally {
            \proc_terminate($process, \SIGKILL);
            $code = \proc_close($process);
        }

        self::assertSame(0, $code, $told);
        self::assertStringContainsString('Messages of queue works still in flight after the grace period of 0.1 seconds: 1; they are cancelled and requeued', $told);
        self::assertStringContainsString("cancelled\n", $told);
        $counted = \proc_open([...$command, 'count'], [1 => ['pipe', 'w']], $pipes);
        self::assertSame('1 0', \stream_get_contents($pipes[1]));
        \proc_close($counted);
        \array_map(unlink(...), \glob("$database-weft/*") ?: []);
        @\rmdir("$database-weft");
    }

    public function testTheEndpointTellsWhatBecomesOfMessagesByTypesThatTheProgramKnows(): void
    {
        $database = "{$this->app->directory}/bus.db";
        $autoload = \var_export(\dirname(__DIR__, 2) . '/autoload.php', true);
        \file_put_contents($this->app->file, <<<PHP
            <?php
            require $autoload;
            use Weft\\Bus\\{Bus, CommandHandler, QueryHandler, Retry};
            use Weft\\Bus\\Transport\\Outgoing;
            final class Work { public function __construct(public int \$kind) {} }
            final class Price {}
            final class Works
            {
                private int \$tries = 0;
                #[CommandHandler]
                #[Retry(delayed: 1, delay: 0.01, on: [LogicException::class])]
                public function work(Work \$work): void
                {
                    match (\$work->kind) {
                        0 => null,
                        1 => throw new Error('never'),
                        2 => \$this->tries++ === 0 ? throw new LogicException('later') : null,
                        3 => Weft\\delay(600.0),
                    };
                }
                #[QueryHandler]
                public function price(Price \$price): never { throw new DomainException('none'); }
            }
            \$app = (new Weft\\App(grace: 0.1))->metrics('127.0.0.1:0');
            \$bus = Bus::connect('sqlite:$database')->handlers(new Works());
            \$bus->queue('works')->declare();
            \$transport = Weft\\Bus\\Transport\\Sqlite::connect('sqlite:$database');
            foreach ([0, 0, 0, 1, 2, 3] as \$kind) { \$bus->send(new Work(\$kind)); }
            for (\$i = 0; \$i < 20; \$i++) { \$transport->put('works', [new Outgoing("foreign \$i", '{}', [])]); }
            \$app->consume(\$bus, 'works')->run(static function () use (\$bus): void {
                Weft\\detach(static function () use (\$bus): void {
                    try { \$bus->request(new Price(), timeout: 60.0); } catch (Weft\\Bus\\RequestFailedException) {}
                    while (\$bus->admin()->stats()->succeeded() < 5 || \$bus->admin()->stats()->deadLettered < 21) { Weft\\delay(0.01); }
                    fwrite(STDERR, "settled\\n");
                });
            });
            PHP);
        $process = \proc_open([\PHP_BINARY, '-d', 'extension=' . Extension::library(), $this->app->file], [0 => ['file', '/dev/null', 'r'], 1 => ['file', '/dev/null', 'w'], 2 => ['pipe', 'w']], $pipes);
        try {
            \stream_set_timeout($pipes[2], 60);
            $metrics = self::matched('~http://(\S+)/metrics~', (string) \fgets($pipes[2]));
            $told = '';
            while (($line = \fgets($pipes[2])) !== false && $line !== "settled\n") {
                $told .= $line;
            }
            self::assertSame("settled\n", $line, $told);
            $text = self::get("http://$metrics/metrics")[1];
        } finally {
            \proc_terminate($process);
            \stream_get_contents($pipes[2]);
            \proc_close($process);
            \array_map(unlink(...), \glob("$database-weft/*") ?: []);
            @\rmdir("$database-weft");
        }

        foreach (
            [
            'weft_bus_succeeded_total{type="Work"} 4',
            'weft_bus_failed_total{type="Work"} 2',
            'weft_bus_retried_total{type="Work"} 1',
            'weft_bus_dead_lettered_total{type="Work"} 1',
            'weft_bus_failed_total{type="Price"} 1',
            'weft_bus_dead_lettered_total{type="other"} 20',
            'weft_bus_handler_duration_seconds_count{type="Work"} 4',
            'weft_bus_in_flight{type="Work"} 1',
            'weft_bus_in_flight{type="Price"} 0',
            "weft_bus_outbox_messages{database=\"{$database}\"} 0",
            "weft_bus_outbox_oldest_seconds{database=\"{$database}\"} 0",
            "weft_bus_delayed_messages{database=\"{$database}\"} ",
            'weft_bus_queue_messages{queue="works"} ',
            'weft_bus_queue_messages{queue="works.dead"} ',
            ] as $series
        ) {
            self::assertStringContainsString($series, $text);
        }
        self::assertStringNotContainsString('weft_bus_succeeded_total{type="Price"}', $text);
        self::assertStringNotContainsString('foreign', $text);
    }

    public function testUnfinishedWorkIsCancelledBeforeTheSupervisorKillsAWorkerByDefault(): void
    {
        $grace = (new \ReflectionParameter([\Weft\App::class, '__construct'], 'grace'))->getDefaultValue();
        $drainTimeout = (new \ReflectionParameter([RunOptions::class, '__construct'], 'drainTimeout'))->getDefaultValue();

        // onStop hooks have at least a second after the grace period.
        self::assertGreaterThan($grace + 1.0, $drainTimeout);
        self::assertSame($drainTimeout, (float) (new RunCommand())->getDefinition()->getOption('drain-timeout')->getDefault());
    }

    public function testAGraceThatIsNotShorterThanTheDrainTimeoutIsLoggedOnce(): void
    {
        $run = $this->start('--workers=2', '--drain-timeout=30');
        $run->wait('is ready');
        $run->wait('is ready');
        $run->signal(\SIGTERM);

        self::assertSame(0, $run->end());
        self::assertSame([
            'The grace of the App is 30 s and --drain-timeout is 30 s: a worker with unfinished work is killed before that work is cancelled and the onStop hooks run. '
            . 'Make --drain-timeout longer than the grace',
        ], $run->all('The grace of the App'), $run->messages());
    }

    public function testAGraceThatIsShorterThanTheDrainTimeoutIsNotLogged(): void
    {
        $run = $this->start('--workers=1');
        $run->wait('is ready');
        $run->signal(\SIGTERM);

        self::assertSame(0, $run->end());
        self::assertSame([], $run->all('The grace of the App'), $run->messages());
    }

    public function testAnAddressIsServedOnceUnlessItsPortIsFree(): void
    {
        $app = new \Weft\App();
        foreach (['127.0.0.1:0', '[::1]:0', '127.0.0.1:18080', 'unix:/run/a:0'] as $address) {
            $app->http($address);
        }
        self::assertNotSame($app->http('127.0.0.1:0'), $app->http('127.0.0.1:0'));
        foreach (['127.0.0.1:18080', 'unix:/run/a:0'] as $address) {
            try {
                $app->http($address);
                self::fail("two routers for $address");
            } catch (\Error $refused) {
                self::assertSame("The application serves $address already: add the routes to the router of the first http()", $refused->getMessage());
            }
        }
    }

    public function testOneAddressHasTheServicesOfOneGrpcCall(): void
    {
        $app = new \Weft\App();
        $app->http('127.0.0.1:18080');
        $app->grpc('127.0.0.1:0', []);
        $app->grpc('127.0.0.1:0', []);
        $app->grpc('127.0.0.1:18080', []);

        $this->expectException(\Error::class);
        $this->expectExceptionMessage('The application serves gRPC on 127.0.0.1:18080 already: give all services to the first grpc()');
        $app->grpc('127.0.0.1:18080', []);
    }

    public function testAGraceIsNoNegativeTime(): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage('The grace of an App must be at least 0 seconds, got -1');
        new \Weft\App(grace: -1.0);
    }

    private function start(string ...$options): Supervised
    {
        $this->write();

        return new Supervised($this->app->file, \array_values($options));
    }

    private function write(string $more = ''): void
    {
        $autoload = \var_export(\dirname(__DIR__, 2) . '/autoload.php', true);
        $routes = self::ROUTES;
        \file_put_contents($this->app->file, <<<PHP
            <?php
            require $autoload;
            use Weft\\App;
            use Weft\\Http\\Response;
            use function Weft\\delay;
            \$app = new App;
            $more
            \$routes = \$app->http("127.0.0.1:0");
            $routes
            \$app->run();
            PHP);
    }

    private static function address(Supervised $run): string
    {
        return $run->wait('listening on')['address'];
    }

    private static function matched(string $expression, string $text): string
    {
        self::assertSame(1, \preg_match($expression, $text, $found), $text);

        return $found[1];
    }

    /** @return array{int, string} status and body */
    private static function get(string $url): array
    {
        $answer = HttpAnswer::of($url, ['timeout' => 60, 'header' => 'Connection: close']);

        return [$answer->status, (string) $answer->body];
    }
}
