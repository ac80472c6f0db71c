<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Laravel;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Bus\Bus;
use Weft\Bus\Transport\RabbitMq;
use Weft\Tests\Bridge\ServesExample;
use Weft\Tests\Bridge\Symfony\Browser;
use Weft\Tests\Timing;

/** `examples/laravel` on Weft, and on PHP's own server and PHP-FPM beside it. */
final class ApplicationTest extends TestCase
{
    use RequiresLaravel;
    use ServesExample;

    public function testTheSameRequestsHaveTheSameAnswersOnWeftOnPhpsOwnServerAndOnPhpFpm(): void
    {
        $api = $this->api();
        $transcripts = $mails = [];
        foreach (self::servers() as $server => $start) {
            $this->sites[] = $site = $start($this->directory(), ['API_URL' => "http://$api->address"]);
            $transcripts[$server] = $this->transcript($site);
            self::assertStringNotContainsString('[500,', \implode("\n", $transcripts[$server]), "$server: {$site->log()}");
            $mails[$server] = \preg_match_all('/^(?:Subject|To): .*|^Hello .*/m', $site->mails(), $lines) > 0 ? $lines[0] : [];
        }

        self::assertStringContainsString('Zoë &amp; Co', \implode("\n", $transcripts['Weft']));
        self::assertStringContainsString(', welcomed', \implode("\n", $transcripts['Weft']));
        self::assertNotSame([], $mails['Weft']);
        self::assertSame($transcripts['PHP'], $transcripts['Weft']);
        self::assertSame($transcripts['PHP-FPM'] ?? $transcripts['PHP'], $transcripts['PHP']);
        self::assertSame($mails['PHP'], $mails['Weft']);
    }

    public function testAnAddressInUseIsNamedWithTheWayOut(): void
    {
        $this->sites[] = $site = Site::onWeft($this->directory());

        $this->expectExceptionMessageMatches('/cannot listen on 127\.0\.0\.1:\d+: Address already in use \(.*\)\. --host and --port, or WEFT_LISTEN, name another address/');
        $site->artisan('weft:serve', '--worker', '--port=' . \explode(':', $site->address)[1]);
    }

    public function testAChangedEnvironmentFileIsReadByTheNextWorkers(): void
    {
        $directory = $this->directory();
        $route = '<?php Illuminate\Support\Facades\Route::get("/note", static fn() => env("NOTE") . " " . getenv("NOTE") . " " . config("app.url"));';
        $this->sites[] = $site = Site::ofCopy($directory, ['.env' => "NOTE=first\nAPP_URL=http://first\n", 'routes/web.php' => $route], ['--watch']);
        $browser = new Browser($site->address);
        self::assertSame('first first http://first', $browser->get('/note')->body);

        // As editors save it.
        \file_put_contents("$directory/saved", "NOTE=second\nAPP_URL=http://second\n");
        \rename("$directory/saved", Site::copyIn($directory) . '/.env');

        Timing::until(static fn(): bool => \str_contains($site->log(), 'reload finished'), 'the workers are replaced');
        $browser = new Browser($site->address);
        self::assertSame('second second http://second', $browser->get('/note')->body);
    }

    public function testANumberOfTheConfigurationThatIsNoneIsNamed(): void
    {
        $this->sites[] = $site = Site::onPhp($this->directory(), ['WEFT_APPLICATION_MEMORY' => 'lots']);

        $this->expectExceptionMessage('"application_memory" in config/weft.php (WEFT_APPLICATION_MEMORY) is "lots": it must be a number of bytes, optionally with K, M or G, such as 256M');
        $site->artisan('weft:serve', '--worker', '--port=0');
    }

    public function testAnEmptyVariableOfTheEnvironmentIsOneThatIsNotSet(): void
    {
        $this->sites[] = $site = Site::onWeft($this->directory(), \array_fill_keys(['WEFT_POOL_SIZE', 'WEFT_APPLICATIONS', 'WEFT_APPLICATION_MEMORY', 'WEFT_PUBLIC', 'WEFT_DATABASE'], ''));

        self::assertSame(200, (new Browser($site->address))->get('/')->status, $site->log());
    }

    public function testASizeOfThePoolsThatIsNoneIsNamedWithItsVariable(): void
    {
        $this->expectException(\RuntimeException::class);
        $this->expectExceptionMessage('"size" in "pool" of "database" in config/weft.php (WEFT_POOL_SIZE) is "many": it must be an integer of at least 1');
        Site::onWeft($this->directory(), ['WEFT_POOL_SIZE' => 'many']);
    }

    /** @return array<string, \Closure(string, array<string, string>): Site> `scripts/setup test` installs PHP-FPM */
    private static function servers(): array
    {
        return ['Weft' => Site::onWeft(...), 'PHP' => Site::onPhp(...)] + (Site::fpm() === null ? [] : ['PHP-FPM' => Site::onFpm(...)]);
    }

    public function testRequestsThatWaitAtTheSameTimeSeeTheirOwnUserRequestAndSession(): void
    {
        $api = $this->api();
        $this->sites[] = $site = Site::onWeft($this->directory(), ['API_URL' => "http://$api->address", 'WEFT_APPLICATIONS' => '8']);
        $browsers = ['ada' => self::loggedIn($site, 'ada'), 'zoe' => self::loggedIn($site, 'zoe')];

        for ($round = 0; $round < 5; ++$round) {
            $sent = [];
            foreach (\range(1, 8) as $number) {
                // The API answers when all eight are there: one after the other they would wait for ever.
                $user = $number % 2 === 0 ? 'ada' : 'zoe';
                $browser = clone $browsers[$user];
                $sent[] = [$user, "8-$round-$number", $browser, $browser->send('GET', "/quote?tag=8-$round-$number")];
            }
            foreach ($sent as [$user, $tag, $browser, $socket]) {
                $browser->receive($socket);
                self::assertSame(200, $browser->status, $browser->body . $site->log());
                self::assertSame(
                    ['quote' => "about $tag", 'before' => [$user, $tag], 'after' => [$user, $tag], 'session' => $user],
                    \json_decode($browser->body, true),
                );
            }
        }
    }

    /** @return iterable<string, array{string}> */
    public static function connections(): iterable
    {
        yield 'of a pool' => ['true'];
        yield 'of the application' => ['false'];
    }

    /** @dataProvider connections */
    #[DataProvider('connections')]
    public function testATransactionInWhichARequestExitsIsRolledBackAtOnce(string $isPooled): void
    {
        $routes = <<<'PHP'
            <?php
            use Illuminate\Support\Facades\{DB, Route};
            Route::get('/leave', static fn() => DB::transaction(static function (): void {
                DB::table('quotes')->insert(['text' => 'left']);
                exit('left');
            }));
            PHP;
        $directory = $this->directory();
        $this->sites[] = $site = Site::ofCopy($directory, ['.env' => "WEFT_DATABASE=$isPooled\n", 'routes/web.php' => $routes], []);
        $browser = new Browser($site->address);

        self::assertSame('left', $browser->get('/leave')->body);
        $database = new \PDO("sqlite:$directory/app.db", options: [\PDO::ATTR_TIMEOUT => 0]);
        Timing::until(static function () use ($database): bool {
            try {
                $database->exec('BEGIN IMMEDIATE');

                return true;
            } catch (\PDOException) {
                return false;
            }
        }, 'nobody else writes');
        self::assertSame([], $database->query('SELECT text FROM quotes')->fetchAll());
    }

    /** Routes that wait until the file `answered` is there. The first one has paid by then, and stores it. What is reported is named in a file. */
    private const WAITING = <<<'PHP'
        <?php
        use Illuminate\Contracts\Debug\ExceptionHandler;
        use Illuminate\Foundation\Exceptions\Handler;
        use Illuminate\Support\Facades\Route;
        $report = static fn(Throwable $thrown) => file_put_contents(getenv('APP_VAR') . '/reported', get_class($thrown) . ": {$thrown->getMessage()}\n", FILE_APPEND);
        app()->afterResolving(Handler::class, static fn(Handler $handler) => $handler->reportable($report));
        if (env('HANDLER') === 'of its own') {
            app()->singleton(ExceptionHandler::class, static fn() => new class ($report) implements ExceptionHandler {
                public function __construct(private Closure $report) {}
                public function report(Throwable $e) { ($this->report)($e); }
                public function shouldReport(Throwable $e) { return true; }
                public function render($request, Throwable $e) { return response('failed', 500); }
                public function renderForConsole($output, Throwable $e) {}
            });
        }
        $pay = static function (): string {
            $directory = getenv('APP_VAR');
            touch("$directory/paying");
            try {
                while (!file_exists("$directory/answered")) { usleep(5_000); clearstatcache(); }
                touch("$directory/stored");
            } finally {
                // The test removes it at once: touch() would fail where the file goes between its two steps, creating it and setting its times.
                file_put_contents("$directory/ended", '');
            }
            return 'paid';
        };
        Route::middleware('web')->group(static function () use ($pay): void {
            Route::get('/pay', $pay);
            Route::get('/pay-wrapped', static function () use ($pay): string {
                try {
                    return $pay();
                } catch (Exception $thrown) {
                    throw new LogicException('wrapped', 0, $thrown);
                }
            });
            Route::get('/pay-limited', $pay)->middleware(App\Http\Limited::class);
            Route::get('/ticks', static fn() => response()->stream(static function (): void {
                try {
                    while (true) { echo 'tick'; flush(); usleep(1_000); }
                } finally {
                    touch(getenv('APP_VAR') . '/ended');
                }
            }));
            Route::get('/fail', static fn() => throw new RuntimeException('on purpose'));
        });
        PHP;

    public function testARequestWhoseClientHasGoneIsFinishedAndAStreamedResponseEnds(): void
    {
        $directory = $this->directory();
        $this->sites[] = $site = Site::ofCopy($directory, ['routes/web.php' => self::WAITING], []);
        $browser = new Browser($site->address);
        $exists = static fn(string $name): \Closure => static fn(): bool => \file_exists("$directory/$name");
        $client = $browser->send('GET', '/pay');
        Timing::until($exists('paying'), 'the request begins');
        \fclose($client);
        // The server has noticed that it has gone when it answers another one.
        self::assertSame(500, $browser->get('/fail')->status);
        \touch("$directory/answered");
        Timing::until($exists('ended'), 'the request ends');
        self::assertFileExists("$directory/stored");

        \unlink("$directory/ended");
        $client = $browser->send('GET', '/ticks');
        while (!\str_contains($line = (string) \fgets($client), 'tick')) {
            self::assertNotSame('', $line, 'the response begins');
        }
        \fclose($client);
        Timing::until($exists('ended'), 'the response ends');
        self::assertSame("RuntimeException: on purpose\n", \file_get_contents("$directory/reported"));
        self::assertStringNotContainsString('ancelled', $site->log());
    }

    /** @return iterable<string, array{string, string}> */
    public static function cancelled(): iterable
    {
        yield 'as it is' => ['/pay', "Laravel's"];
        yield 'in another exception' => ['/pay-wrapped', "Laravel's"];
        yield 'of an application with an exception handler of its own' => ['/pay-wrapped', 'of its own'];
    }

    /** @dataProvider cancelled */
    #[DataProvider('cancelled')]
    public function testACancelledRequestIsNoErrorOfTheApplication(string $path, string $handler): void
    {
        $directory = $this->directory();
        $this->sites[] = $site = Site::ofCopy($directory, ['.env' => "WEFT_CANCEL_ON_DISCONNECT=true\nHANDLER=\"$handler\"\n", 'routes/web.php' => self::WAITING], []);
        $browser = new Browser($site->address);
        $client = $browser->send('GET', $path);
        Timing::until(static fn(): bool => \file_exists("$directory/paying"), 'the request begins');
        \fclose($client);
        Timing::until(static fn(): bool => \file_exists("$directory/ended"), 'the request is cancelled');

        self::assertSame(500, $browser->get('/fail')->status);
        self::assertSame("RuntimeException: on purpose\n", \file_get_contents("$directory/reported"));
        self::assertFileDoesNotExist("$directory/stored");
        self::assertDoesNotMatchRegularExpression('/ancelled|wrapped/', $site->log());
    }

    public function testAMiddlewareThatLimitsTheTimeOfTheOthersFailsWithTheTimeout(): void
    {
        $directory = $this->directory();
        $middleware = '<?php namespace App\Http; class Limited { public function handle($request, $next) { return \Weft\timeout(0.1, static fn() => $next($request)); } }';
        $this->sites[] = $site = Site::ofCopy($directory, ['app/Http/Limited.php' => $middleware, 'routes/web.php' => self::WAITING], []);

        self::assertSame(500, (new Browser($site->address))->get('/pay-limited')->status);
        self::assertMatchesRegularExpression('/\AWeft\\\\Runtime\\\\TimeoutException: .* did not finish within 0\.1 seconds.*\n\z/', (string) \file_get_contents("$directory/reported"));
    }

    public function testJobsThatWaitAreHandledAtTheSameTimeEachInAnApplicationOfItsOwn(): void
    {
        $api = $this->api();
        $this->sites[] = $site = Site::onWeft($this->directory(), ['API_URL' => "http://$api->address"]);
        $site->artisan('queue:quotes', '6');

        // One after the other they would wait for ever.
        $site->artisan('weft:work', '--concurrency=6', '--stop-when-empty');

        $quotes = \json_decode($site->artisan('queue:quotes'), true);
        \sort($quotes);
        self::assertSame(['about 6-1', 'about 6-2', 'about 6-3', 'about 6-4', 'about 6-5', 'about 6-6'], $quotes);
    }

    public function testASwitchOfTheEnvironmentHasTheWordsOfEveryOther(): void
    {
        foreach (['on', 'no'] as $public) {
            $this->sites[] = $site = Site::ofCopy($this->directory(), ['.env' => "WEFT_PUBLIC=$public\n", 'public/there.txt' => 'there'], []);
            self::assertSame($public === 'on' ? 200 : 404, (new Browser($site->address))->get('/there.txt')->status);
        }
        $this->expectException(\RuntimeException::class);
        $this->expectExceptionMessage('"enabled" of "database" in config/weft.php (WEFT_DATABASE) is "perhaps": it must be true, false, 1, 0, yes, no, on or off');
        Site::onWeft($this->directory(), ['WEFT_DATABASE' => 'perhaps']);
    }

    /** @dataProvider badOptions */
    #[DataProvider('badOptions')]
    public function testANumberOfAWorkerThatIsNoneIsRefusedWithItsOption(string $option, string $complaint): void
    {
        $this->sites[] = $site = Site::onWeft($this->directory());

        $this->expectException(\RuntimeException::class);
        $this->expectExceptionMessage($complaint);
        $site->artisan('weft:work', '--stop-when-empty', $option);
    }

    /** @return iterable<string, array{string, string}> */
    public static function badOptions(): iterable
    {
        yield 'concurrency' => ['--concurrency=many', '--concurrency is "many": it must be an integer of at least 1 and at most 1000000'];
        yield 'seconds with a unit' => ['--max-time=1h', '--max-time is "1h": it must be a number of seconds, at least 0 and at most 1000000000'];
        yield 'too many seconds' => ['--max-time=1000000001', '--max-time is "1000000001": it must be a number of seconds, at least 0 and at most 1000000000'];
        yield 'several queues' => ['--queue=high,low', '--queue is "high,low": weft:work handles the jobs of one queue, start one weft:work for each queue'];
        yield 'a name that no queue has' => ['--queue=emails/eu', 'The queue "emails/eu" must have a name of 1 to 150 letters'];
        yield 'negative' => ['--max-jobs=-1', '--max-jobs is "-1": it must be an integer of at least 0'];
    }

    public function testAFailedJobIsStoredAndRetriedByLaravelsOwnCommand(): void
    {
        $this->sites[] = $site = Site::onWeft($this->directory(), ['API_URL' => 'http://127.0.0.1:1']);
        $site->artisan('queue:quotes', '1');
        $site->artisan('weft:work', '--tries=2', '--stop-when-empty');
        self::assertMatchesRegularExpression('/App\\\\Jobs\\\\FetchQuote/', $site->artisan('queue:failed'));

        $site->artisan('queue:retry', 'all');
        self::assertStringContainsString('No failed jobs', $site->artisan('queue:failed'));
        $site->artisan('weft:work', '--stop-when-empty');
        self::assertMatchesRegularExpression('/App\\\\Jobs\\\\FetchQuote/', $site->artisan('queue:failed'));
    }

    public function testAJobWhoseWorkerIsStoppedAtOnceHasNotFailedAndComesAgain(): void
    {
        $api = $this->api();
        $this->sites[] = $site = Site::onWeft($this->directory(), ['API_URL' => "http://$api->address"]);
        $site->artisan('queue:quotes', '2');
        $requests = new Browser($api->address);
        // The API does not answer the first before the second is there.
        $log = $site->stopWorkerAtOnce(static fn(): bool => $requests->get('/requests')->body === '1', '--concurrency=1');

        self::assertStringContainsString('No failed jobs', $site->artisan('queue:failed'), $log);
        $site->artisan('weft:work', '--concurrency=2', '--tries=1', '--stop-when-empty');
        self::assertSame(['about 2-1', 'about 2-2'], \json_decode($site->artisan('queue:quotes'), true));
    }

    /** @return iterable<string, array{string, string}> what the job and a listener of its start do */
    public static function waits(): iterable
    {
        yield 'in a statement, whose exception Laravel wraps' => ['DB::select("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 1e12) SELECT count(*) FROM n");', ''];
        yield 'in code that wraps exceptions' => ['try { sleep(1000); } catch (Throwable $thrown) { throw new RuntimeException("wrapped", 0, $thrown); }', ''];
        yield 'in a task of its own' => ['Weft\\async(static fn() => Weft\\delay(1000.0))->await();', ''];
        yield 'in a listener of its start' => ['', 'sleep(1000);'];
    }

    /** @dataProvider waits */
    #[DataProvider('waits')]
    public function testAJobThatIsInterruptedWhereItWaitsHasNotFailedAndComesAgain(string $job, string $listener): void
    {
        $site = $this->siteWithAJob($job, $listener);
        $busy = "{$this->directories[0]}/busy";

        $log = $site->stopWorkerAtOnce(static fn(): bool => \is_file($busy), '--tries=1');

        self::assertStringContainsString('No failed jobs', $site->artisan('queue:failed'), $log);
        $site->artisan('weft:work', '--tries=1', '--stop-when-empty');
        self::assertSame(['attempt 1'], \json_decode($site->artisan('queue:quotes'), true));
    }

    /** @return iterable<string, array{string, string}> what the job does, and why it fails */
    public static function failures(): iterable
    {
        yield 'its time limit' => ['public $timeout = 1;', 'sleep(1000);', 'did not finish within 1 seconds'];
        yield 'a task of its own' => ['', 'Weft\\async(static fn() => throw new RuntimeException("broken task")); Weft\\delay(1000.0);', 'broken task'];
        yield 'a task of its own, without a time limit' => ['public $timeout = 0;', 'Weft\\async(static fn() => throw new RuntimeException("broken task")); Weft\\delay(1000.0);', 'broken task'];
    }

    /** @dataProvider failures */
    #[DataProvider('failures')]
    public function testAJobThatIsCancelledForItsOwnFailureHasFailed(string $properties, string $job, string $why): void
    {
        $site = $this->siteWithAJob($job, '', $properties);

        $site->artisan('weft:work', '--tries=1', '--stop-when-empty');

        self::assertMatchesRegularExpression('/App\\\\Jobs\\\\Waiting/', $site->artisan('queue:failed'));
        $failed = new \PDO("sqlite:{$this->directories[0]}/app.db");
        self::assertStringContainsString($why, (string) $failed->query('SELECT exception FROM failed_jobs')?->fetchColumn());
        self::assertSame([], \json_decode($site->artisan('queue:quotes'), true));
    }

    /** @return iterable<string, array{string|null, string, int, string}> variable with the DSN of the bus, options of the job, how often it runs, why it fails */
    public static function killers(): iterable
    {
        foreach (self::buses() as $bus => [$variable]) {
            // The first time may be that of a job which has only waited in a worker that was stopped.
            yield "$bus, tries of its own" => [$variable, 'public $tries = 2;', 3, 'App\Jobs\Waiting has been attempted too many times'];
            yield "$bus, no end of tries" => [$variable, 'public $tries = 0;', 5, 'The job App\Jobs\Waiting was begun 5 times by workers that ended before it did'];
        }
    }

    /** @dataProvider killers */
    #[DataProvider('killers')]
    public function testAJobThatKillsItsWorkersIsAmongTheFailedJobs(?string $variable, string $properties, int $runs, string $why): void
    {
        $queue = 'weft-laravel-' . \bin2hex(\random_bytes(6));
        $bus = $variable === null ? null : (string) \getenv($variable);
        $kill = 'file_put_contents(storage_path("runs"), "x", FILE_APPEND); posix_kill(getmypid(), SIGKILL);';
        $site = $this->siteWithAJob('', '', $properties, $kill, ['WEFT_QUEUE' => $queue] + ($bus === null ? [] : ['WEFT_BUS' => $bus]));
        try {
            $failed = '';
            Timing::until(static function () use ($site, &$failed): bool {
                $worker = $site->startWorker('--stop-when-empty');
                Timing::until(static fn(): bool => !\proc_get_status($worker)['running'], 'the worker ends');
                $failed = $site->artisan('queue:failed');

                return !\str_contains($failed, 'No failed jobs');
            }, 'the job has failed');

            self::assertMatchesRegularExpression('/App\\\\Jobs\\\\Waiting/', $failed);
            $exception = (new \PDO("sqlite:{$this->directories[0]}/app.db"))->query('SELECT exception FROM failed_jobs')?->fetchColumn();
            self::assertStringContainsString($why, (string) $exception);
            self::assertSame($runs, \strlen((string) \file_get_contents("{$this->directories[0]}/runs")), $site->workerLog());
            $jobs = Bus::connect($bus ?? "sqlite:{$this->directories[0]}/bus.db")->queue($queue);
            self::assertSame([0, 0], [$jobs->depth(), $jobs->deadLetters()->count()]);
        } finally {
            if ($bus !== null) {
                $transport = RabbitMq::connect($bus);
                $transport->delete($queue);
                $transport->close();
            }
        }
    }

    public function testAFailedJobThatIsStoredAlreadyIsAcknowledged(): void
    {
        $store = 'DB::table("failed_jobs")->insert(["uuid" => $this->job->uuid(), "connection" => "weft", "queue" => "default", "payload" => "{}", "exception" => "first", "failed_at" => now()]);';
        $site = $this->siteWithAJob('', '', always: "$store throw new RuntimeException('again');");

        $site->artisan('weft:work', '--tries=1', '--stop-when-empty');

        $failed = (new \PDO("sqlite:{$this->directories[0]}/app.db"))->query('SELECT exception FROM failed_jobs')?->fetchAll(\PDO::FETCH_COLUMN);
        self::assertSame(['first'], $failed);
        $jobs = Bus::connect("sqlite:{$this->directories[0]}/bus.db")->queue('default');
        self::assertSame([0, 0], [$jobs->depth(), $jobs->deadLetters()->count()]);
    }

    /**
     * A copy of the example with one job in its queue, which waits when it runs for the first time.
     *
     * @param string $always what the job does each time
     * @param array<string, string> $environment
     */
    private function siteWithAJob(string $job, string $listener, string $properties = '', string $always = '', array $environment = []): Site
    {
        $once = static fn(string $code): string => $code === '' ? '' : "if (!is_file(storage_path('busy'))) { touch(storage_path('busy')); $code }";
        $files = [
            'app/Jobs/Waiting.php' => "<?php namespace App\\Jobs; use Illuminate\\Support\\Facades\\DB; use Illuminate\\Bus\\Queueable; use Illuminate\\Contracts\\Queue\\ShouldQueue; use Illuminate\\Queue\\InteractsWithQueue; use RuntimeException; use Throwable; use Weft;
                class Waiting implements ShouldQueue { use InteractsWithQueue; use Queueable; $properties
                    function handle() { $always {$once($job)} DB::table('quotes')->insert(['text' => \"attempt {\$this->attempts()}\"]); }
                }",
            'routes/web.php' => "<?php use Illuminate\\Support\\Facades\\{Event, Queue, Route}; Route::get('/dispatch', static function () { Queue::push(new App\\Jobs\\Waiting()); return 'sent'; });
                Event::listen(Illuminate\\Queue\\Events\\JobProcessing::class, static function () { {$once($listener)} });",
        ];
        $environment === [] || $files['.env'] = \implode("\n", \array_map(static fn(string $name, string $value): string => "$name=\"$value\"", \array_keys($environment), $environment)) . "\n";
        $this->sites[] = $site = Site::ofCopy($this->directory(), $files, []);
        $answer = (new Browser($site->address))->get('/dispatch');
        self::assertSame('sent', $answer->body, $site->log());

        return $site;
    }

    /** @return iterable<string, array{string|null}> environment variables with the DSN */
    public static function buses(): iterable
    {
        yield 'RabbitMQ' => ['AMQP_URL'];
        yield 'SQLite' => [null];
    }

    /** @dataProvider buses */
    #[DataProvider('buses')]
    public function testLaravelsOwnWorkerTakesJobsFromTheBus(?string $variable): void
    {
        $api = $this->api();
        $queue = 'weft-laravel-' . \bin2hex(\random_bytes(6));
        $bus = $variable === null ? null : (string) \getenv($variable);
        $this->sites[] = $site = Site::onWeft($this->directory(), ['API_URL' => "http://$api->address", 'WEFT_QUEUE' => $queue] + ($bus === null ? [] : ['WEFT_BUS' => $bus]));
        try {
            $site->artisan('queue:quotes', '1');
            $site->artisan('queue:quotes', '1');
            $site->artisan('queue:quotes', '1');
            $site->artisan('queue:work', '--once', '--sleep=0');
            self::assertCount(1, \json_decode($site->artisan('queue:quotes'), true));
            $site->artisan('queue:work', '--stop-when-empty', '--sleep=0');
            self::assertCount(3, \json_decode($site->artisan('queue:quotes'), true));
        } finally {
            if ($bus !== null) {
                $transport = RabbitMq::connect($bus);
                $transport->delete($queue);
                $transport->close();
            }
        }
    }

    public function testARestartEndsAWorkerWhoseJobsInFlightFinish(): void
    {
        $api = $this->api();
        $requests = new Browser($api->address);
        $this->sites[] = $site = Site::onWeft($this->directory(), ['API_URL' => "http://$api->address"]);
        $site->artisan('queue:restart');
        $site->artisan('queue:quotes', '2');
        // The API does not answer the first before the second is there.
        $worker = $site->startWorker('--concurrency=1');
        Timing::until(static fn(): bool => $requests->get('/requests')->body === '1', 'the worker is busy');

        // The time of a restart is in whole seconds.
        \sleep(1);
        $site->artisan('queue:restart');
        Timing::until(static fn(): bool => \str_contains($site->workerLog(), 'queue:restart was called'), 'the worker knows of it');
        self::assertTrue(\proc_get_status($worker)['running'], $site->workerLog());
        (new Browser($api->address))->get('/quote?tag=2-other');
        $status = [];
        Timing::until(static function () use ($worker, &$status): bool {
            $status = \proc_get_status($worker);

            return !$status['running'];
        }, 'the worker ends');

        self::assertSame(0, $status['exitcode'], $site->workerLog());
        self::assertCount(1, \json_decode($site->artisan('queue:quotes'), true));
    }

    public function testAWorkerTakesNoJobsInMaintenanceModeAndGoesOnAfterwards(): void
    {
        $api = $this->api();
        $this->sites[] = $site = Site::onWeft($this->directory(), ['API_URL' => "http://$api->address"]);
        $quotes = static fn(): int => \count(\json_decode($site->artisan('queue:quotes'), true));
        $worker = $site->startWorker();
        $site->artisan('queue:quotes', '1');
        Timing::until(static fn(): bool => $quotes() === 1, 'the worker takes jobs');

        foreach ([2, 3] as $expected) {
            $site->artisan('down');
            Timing::until(static fn(): bool => \substr_count($site->workerLog(), 'is in maintenance mode') === $expected - 1, 'the worker pauses');
            $site->artisan('queue:quotes', '1');
            $site->artisan('weft:work', '--stop-when-empty');
            self::assertSame($expected - 1, $quotes(), $site->workerLog());
            $site->artisan('up');
            Timing::until(static fn(): bool => $quotes() === $expected, 'the worker goes on');
        }

        $site->artisan('down');
        Timing::until(static fn(): bool => \substr_count($site->workerLog(), 'is in maintenance mode') === 3, 'the worker pauses');
        $site->artisan('queue:quotes', '1');
        $site->artisan('weft:work', '--stop-when-empty', '--force');
        self::assertSame(4, $quotes());
        \proc_terminate($worker);
        Timing::until(static fn(): bool => !\proc_get_status($worker)['running'], 'a signal ends a paused worker');
    }

    public function testAnApplicationWithoutAKeyIsNotServedAndTheCommandSaysWhatToDo(): void
    {
        $this->sites[] = $site = Site::onPhp($this->directory(), ['APP_KEY' => '(empty)']);

        $this->expectExceptionMessage('run `php artisan key:generate`');
        $site->artisan('weft:serve');
    }

    /** @return list<string> what a visitor sees, without what differs from run to run */
    private function transcript(Site $site): array
    {
        $browser = new Browser($site->address);
        $lines = [];
        $note = static function (Browser $seen) use (&$lines, $site): void {
            $kept = \array_intersect_key($seen->headers, \array_flip(['content-type', 'location', 'cache-control', 'set-cookie', 'vary']));
            \ksort($kept);
            $text = \json_encode([$seen->status, $kept], \JSON_UNESCAPED_SLASHES) . "\n$seen->body";
            $text = \str_replace([$site->address, 'charset=utf-8'], ['site', 'charset=UTF-8'], $text);
            $lines[] = (string) \preg_replace(['/((?:session|XSRF-TOKEN)=)[^;"]+/', '/(expires=)[^;"]+/', '/(Max-Age=)\d+/', '/(_token" value=")[^"]+/'], '$1…', $text);
        };
        $customer = static fn(string $name, string $email): array => ['name' => $name, 'email' => $email, '_token' => $browser->token('_token')];
        $note($browser->get('/'));
        $note($browser->get('/customers'));
        $note(self::logIn($browser, 'nobody'));
        $note($browser->get('/login'));
        $note(self::logIn($browser, 'ada'));
        $note($browser->get('/customers'));
        $note($browser->get('/customers/create'));
        $note($browser->post('/customers', $customer('', 'no address')));
        $note($browser->get('/customers/create'));
        $note($browser->post('/customers', ['_token' => 'forged'] + $customer('Zoë', 'zoe@example.org')));
        $note($browser->get('/customers/create'));
        $note($browser->post('/customers', $customer('Zoë', 'zoe@example.org')));
        $note($browser->get('/customers'));
        $note($browser->get('/customers/1/edit'));
        $note($browser->post('/customers/1', ['_method' => 'PUT'] + $customer('Zoë & Co', 'zoe@example.org')));
        $site->artisan('weft:work', '--stop-when-empty');
        $note($browser->get('/customers'));
        $note($browser->get('/customers/99/edit'));
        $note($browser->get('/quote?tag=1-one'));
        $token = $browser->get('/customers')->token('_token');
        $note($browser->post('/customers/1', ['_method' => 'DELETE', '_token' => $token]));
        $note($browser->get('/customers'));
        $note($browser->post('/logout', ['_token' => $browser->token('_token')]));
        $note($browser->get('/customers'));

        return $lines;
    }

    private static function loggedIn(Site $site, string $user): Browser
    {
        $browser = new Browser($site->address);
        self::logIn($browser, $user);
        $browser->get('/');

        return $browser;
    }

    private static function logIn(Browser $browser, string $user): Browser
    {
        $token = $browser->get('/login')->token('_token');

        return $browser->post('/login', ['name' => $user, 'password' => 'secret', '_token' => $token]);
    }
}
