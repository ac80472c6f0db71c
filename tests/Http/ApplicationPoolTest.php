<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Tests\Runtime\Subprocess;
use Weft\Tests\Timing;

/** Instances of an application, each in its realm. Programs of their own: realms take hold of state that PHPUnit uses as well. */
final class ApplicationPoolTest extends HttpTestCase
{
    /** An application whose number is also a static property of its realm. */
    private const APPLICATION = <<<'PHP'
        use Weft\Http\{ApplicationPool, ApplicationPoolExhaustedException, Recycling};
        use Weft\Runtime\Realm;
        final class Application {
            public static int $made = 0;
            public static ?int $current = null;
            public static array $log = [];
            public readonly int $number;
            public function __construct() { self::$current = $this->number = ++self::$made; }
        }
        Realm::isolate('Application::current');
        $boot = static fn() => new Application();
        $number = static fn(Application $application): int => $application->number;
        PHP;

    public function testAnInstanceIsBootedWhenNoneIsIdleAndTheLastReturnedIsLentFirst(): void
    {
        $seen = self::program(<<<'PHP'
            $pool = new ApplicationPool($boot, 3);
            $seen[] = $pool->stats()['booted'];
            [$one, $two] = [$pool->borrow(), $pool->borrow()];
            $two->release();
            $one->release();
            $seen[] = [$pool->with($number), $pool->with($number)];
            $seen[] = array_intersect_key($pool->stats(), array_flip(['size', 'in_use', 'idle', 'booted', 'served']));
            PHP);

        self::assertSame([0, [1, 1], ['size' => 3, 'in_use' => 0, 'idle' => 2, 'booted' => 2, 'served' => 4]], $seen);
    }

    public function testAnInstanceWhoseWorkHasFailedIsResetInItsRealmBeforeItIsClosed(): void
    {
        $seen = self::program(<<<'PHP'
            $note = static fn(string $what) => static function (Application $application) use ($what) { Application::$log[] = [$what, $application->number, Application::$current]; };
            $pool = new ApplicationPool($boot, 1, reset: $note('reset'), close: $note('close'));
            try {
                $pool->with(static fn() => throw new LogicException('failed'));
            } catch (LogicException) {
            }
            $pool->close();
            $seen = Application::$log;
            PHP);

        self::assertSame([['reset', 1, 1], ['close', 1, 1]], $seen);
    }

    public function testAnInstanceIsBootedResetAndClosedInItsRealm(): void
    {
        $seen = self::program(<<<'PHP'
            $note = static fn(string $what) => static function (Application $application) use ($what) { Application::$log[] = [$what, $application->number, Application::$current]; };
            $pool = new ApplicationPool($boot, 2, reset: $note('reset'), close: $note('close'));
            $seen[] = all(array_fill(0, 4, static fn() => $pool->with(static function (Application $application) { delay(0.001); return Application::$current === $application->number; })));
            $pool->close();
            sort(Application::$log);
            $seen[] = Application::$log;
            $seen[] = Application::$current;
            PHP);

        self::assertSame([true, true, true, true], $seen[0]);
        self::assertSame([['close', 1, 1], ['close', 2, 2], ['reset', 1, 1], ['reset', 1, 1], ['reset', 2, 2], ['reset', 2, 2]], $seen[1]);
        self::assertNull($seen[2], 'outside of realms');
    }

    public function testAnInstanceIsReplacedAfterAnExceptionOfTheWork(): void
    {
        $seen = self::program(<<<'PHP'
            $pool = new ApplicationPool($boot, 1);
            try {
                $pool->with(static fn() => throw new LogicException('work'));
            } catch (LogicException $thrown) {
                $seen[] = $thrown->getMessage();
            }
            $seen[] = $pool->with($number);
            $seen[] = $pool->stats()['failed'];
            PHP);

        self::assertSame(['work', 2, 1], $seen);
    }

    /** @dataProvider failedResets */
    #[DataProvider('failedResets')]
    public function testTheResultOfTheWorkCountsAlthoughTheResetFailsAndTheInstanceIsReplaced(string $reset, string $logged): void
    {
        $seen = self::program(<<<PHP
            \$logger = new class extends Psr\\Log\\AbstractLogger {
                public array \$records = [];
                public function log(\$level, \$message, array \$context = []): void { \$this->records[] = [\$level, Weft\\Log\\Internal\\Message::of(\$message, \$context)->text]; }
            };
            \$pool = new ApplicationPool(\$boot, 1, reset: static fn(Application \$application) => \$application->number === 1 && $reset, logger: \$logger, name: 'kernels');
            \$seen[] = [\$pool->with(\$number), \$pool->with(\$number)];
            \$borrowed = \$pool->borrow();
            \$seen[] = \$borrowed->run(\$number);
            \$borrowed->release();
            \$seen[] = array_intersect_key(\$pool->stats(), array_flip(['in_use', 'booted', 'served', 'failed']));
            \$seen[] = \$logger->records;
            PHP);

        self::assertSame([[1, 2], 2, ['in_use' => 0, 'booted' => 2, 'served' => 3, 'failed' => 1]], \array_slice($seen, 0, 3));
        self::assertSame(['error'], \array_column($seen[3], 0));
        self::assertStringStartsWith("Pool \"kernels\" replaces an instance whose reset failed: $logged", $seen[3][0][1]);
    }

    /** @return iterable<string, array{string, string}> */
    public static function failedResets(): iterable
    {
        yield 'an exception' => ['throw new LogicException("on purpose")', 'LogicException: on purpose'];
        yield 'exit()' => ['exit(1)', 'Weft\Runtime\ExitException: exit() was called in a realm'];
    }

    public function testATaskThatIsCancelledDuringTheResetIsCancelled(): void
    {
        $seen = self::program(<<<'PHP'
            $pool = new ApplicationPool($boot, 1, reset: static fn(Application $application) => $application->number === 1 && delay(60.0));
            $task = async(static fn() => $pool->with($number));
            while ($pool->stats()['served'] === 0) { delay(0.001); }
            $task->cancel();
            try { $task->await(); } catch (CancelledException) { $seen[] = 'cancelled'; }
            $seen[] = $pool->with($number);
            PHP);

        self::assertSame(['cancelled', 2], $seen);
    }

    public function testAResponseIsSentAlthoughTheResetFails(): void
    {
        $server = $this->serve(<<<'PHP'
            $GLOBALS['booted'] = 0;
            $pool = new Weft\Http\ApplicationPool(static fn() => (object) ['number' => ++$GLOBALS['booted']], 1, reset: static fn() => throw new LogicException('on purpose'));
            $number = static fn(object $application): Response => Response::text("made by $application->number");
            $routes->get('/plain', static fn(Request $request) => $pool->serve($request, $number));
            $routes->get('/terminating', static fn(Request $request) => $pool->serve($request, $number, static fn() => error_log("terminated $_GET[n]")));
            PHP);

        foreach (['/plain?n=a' => 1, '/plain?n=b' => 2, '/terminating?n=c' => 3, '/terminating?n=d' => 4] as $path => $number) {
            $response = $server->get($path);
            self::assertStatus(200, $response);
            self::assertSame("made by $number", self::bodyOf($response));
        }
        self::assertTrue($server->awaitLog('terminated d'));
        self::assertTrue($server->awaitLog('Pool "applications" replaces an instance whose reset failed: LogicException: on purpose'));
    }

    public function testAnInstanceIsReplacedWhenItIsSpent(): void
    {
        $seen = self::program(<<<'PHP'
            $pool = new ApplicationPool($boot, 1, recycling: new Recycling(requests: 2));
            $seen[] = array_map(static fn() => $pool->with($number), [1, 2, 3, 4, 5]);
            $greedy = new ApplicationPool($boot, 1, recycling: new Recycling(memory: 1));
            $seen[] = array_map(static fn() => $greedy->with($number), [1, 2]);
            $seen[] = [$pool->stats()['spent'], $greedy->stats()['spent']];
            PHP);

        self::assertSame([[1, 1, 2, 2, 3], [4, 5], [2, 2]], $seen);
    }

    public function testARequestThatWaitsTooLongIsToldHowManyThereAreAndTheLogWhoHoldsThem(): void
    {
        $seen = self::program(<<<'PHP'
            $logger = new class extends Psr\Log\AbstractLogger {
                public array $records = [];
                public function log($level, $message, array $context = []): void { $this->records[] = strtr($message, array_combine(array_map(static fn($key) => '{' . $key . '}', array_keys($context)), array_map(strval(...), $context))); }
            };
            $pool = new ApplicationPool($boot, 1, wait: 0.05, logger: $logger, name: 'kernels');
            $gate = new Channel(1);
            $holder = async(static fn() => $pool->with(static fn() => $gate->receive()))->named('GET /report from 127.0.0.1:1');
            yieldNow();
            try {
                $pool->borrow();
            } catch (ApplicationPoolExhaustedException $exhausted) {
                $seen = [$exhausted->status, $exhausted->getMessage(), $exhausted->holders, $logger->records];
            }
            $gate->send(1);
            $holder->await();
            $seen[] = [$pool->with($number), $pool->stats()['exhausted'], $pool->stats()['waiting']];
            PHP);

        self::assertSame([503, '503 Service Unavailable: all kernels of the application (1) were busy for 0.05 s'], [$seen[0], $seen[1]]);
        self::assertMatchesRegularExpression('~^GET /report from 127.0.0.1:1 \(\d+\.\d s, waits for .+\)$~', $seen[2][0]);
        self::assertMatchesRegularExpression('~^Pool "kernels" is exhausted: 1 of 1 kernels in use, \d waiting, timed out after 0.05 s. Longest holders: GET /report from~', $seen[3][0]);
        self::assertSame([1, 1, 0], $seen[4]);
    }

    public function testARequestThatIsCancelledWhileItWaitsLeavesTheQueue(): void
    {
        $seen = self::program(<<<'PHP'
            $pool = new ApplicationPool($boot, 1, wait: 60.0);
            $held = $pool->borrow();
            $waiting = async($pool->borrow(...));
            while ($pool->stats()['waiting'] === 0) { delay(0.001); }
            $waiting->cancel();
            try { $waiting->await(); } catch (CancelledException) { $seen[] = 'cancelled'; }
            $seen[] = $pool->stats()['waiting'];
            $held->release();
            $seen[] = $pool->with($number);
            PHP);

        // The holder has started the task that was cancelled, which could have used its instance: that is replaced.
        self::assertSame(['cancelled', 0, 2], $seen);
    }

    public function testAnInstanceThatIsNeitherReleasedNorDiscardedIsReplaced(): void
    {
        $seen = self::program(<<<'PHP'
            $pool = new ApplicationPool($boot, 1);
            $lost = $pool->borrow();
            $lost = null;
            $seen[] = $pool->with($number);
            PHP);

        self::assertSame([2], $seen);
    }

    public function testAFailedBootIsThrownAndTheNextRequestTriesAgain(): void
    {
        $seen = self::program(<<<'PHP'
            $pool = new ApplicationPool(static fn() => Application::$made++ === 0 ? throw new LogicException('no configuration') : new Application(), 1);
            try {
                $pool->borrow();
            } catch (Weft\Pool\FactoryException $failed) {
                $seen[] = $failed->getMessage();
            }
            delay(0.3);
            $seen[] = $pool->with($number);
            PHP);

        self::assertSame(['pool "applications": the factory threw LogicException: no configuration', 3], [\explode(' at ', $seen[0])[0], $seen[1]]);
    }

    /** @dataProvider memories */
    #[DataProvider('memories')]
    public function testTheNumberOfInstancesFitsIntoHalfOfTheMemory(string $limit, int $before): void
    {
        $seen = self::program(<<<'PHP'
            $pool = new ApplicationPool(static function () { $application = new ArrayObject(); $application['held'] = str_repeat('x', 3 << 20); return $application; });
            $seen[] = $pool->size();
            $held = array_map(static fn() => $pool->borrow(), range(1, 3));
            $seen[] = $pool->size();
            PHP, ["memory_limit=$limit"]);

        self::assertSame($before, $seen[0]);
        if ($limit === '48M') {
            self::assertGreaterThan($before, $seen[1], 'an instance takes less than was estimated');
            self::assertLessThanOrEqual(8, $seen[1]);
        }
    }

    public static function memories(): iterable
    {
        yield 'two estimated ones' => ['24M', 3];
        yield 'six, and more once they are measured' => ['48M', 6];
        yield 'the most' => ['1G', 32];
    }

    public function testARealmBeginsWithTheEnvironmentTheErrorHandlerAndInheritedStaticsOfTheProcess(): void
    {
        $seen = self::program(<<<'PHP'
            $_ENV['SECRET'] = $_SERVER['SECRET'] = 'from a file';
            set_error_handler(static function (int $level, string $message) { Application::$log[] = "handled $message"; return true; });
            Realm::inherit('Application::log');
            Application::$log = ['outside'];
            $pool = new ApplicationPool(static function () {
                trigger_error('in boot');
                return (object) ['environment' => [$_ENV['SECRET'] ?? null, $_SERVER['SECRET'] ?? null], 'log' => Application::$log];
            }, 1);
            $seen = $pool->with(static fn(object $application) => [$application->environment, $application->log]);
            $seen[] = Application::$log;
            PHP);

        self::assertSame([['from a file', 'from a file'], ['outside', 'handled in boot'], ['outside']], $seen);
    }

    public function testARealmBeginsWithTheTimeZoneAndTheLocaleOfTheProcess(): void
    {
        $seen = self::program(<<<'PHP'
            date_default_timezone_set('Asia/Tokyo');
            setlocale(LC_ALL, 'C');
            $state = static fn(): array => [date_default_timezone_get(), setlocale(LC_CTYPE, 0)];
            $madeInAnother = (new Realm())->run(static function (): Realm {
                date_default_timezone_set('Europe/Vienna');
                setlocale(LC_ALL, 'C.UTF-8');
                return new Realm();
            });
            $seen = [(new ApplicationPool($boot, 1))->with($state), $madeInAnother->run($state), $state()];
            PHP);

        self::assertSame([['Asia/Tokyo', 'C'], ['Asia/Tokyo', 'C'], ['Asia/Tokyo', 'C']], $seen);
    }

    public function testSizesAndWaitsThatMeanNothingAreRefused(): void
    {
        foreach ([[0, 1.0, 'A pool of kernels needs at least 1 instance, got $size 0'], [1, -1.0, 'The wait for one of the kernels must be at least 0 seconds, got $wait -1'], [1, \NAN, '$wait NAN']] as [$size, $wait, $named]) {
            try {
                new \Weft\Http\ApplicationPool(static fn() => new \stdClass(), $size, $wait, name: 'kernels');
                self::fail($named);
            } catch (\ValueError $error) {
                self::assertStringContainsString($named, $error->getMessage());
            }
        }
    }

    public function testAHeaderOutsideOfARealmIsRefusedWithWhatToUse(): void
    {
        $server = $this->serve(<<<'PHP'
            foreach (['header' => static fn() => header('X-A: b'), 'setcookie' => static fn() => setcookie('a', 'b'), 'http_response_code' => static fn() => http_response_code(404), 'session_start' => static fn() => session_start()] as $function => $call) {
                $routes->get("/$function", static function () use ($call) {
                    try {
                        return Response::text('ignored ' . var_export($call(), true));
                    } catch (Error $refused) {
                        return Response::text($refused->getMessage());
                    }
                });
            }
            $routes->get('/reads', static fn() => Response::json([http_response_code(), headers_list()]));
            header('X-Bootstrap: 1');
            PHP);

        foreach (['header', 'setcookie', 'http_response_code', 'session_start'] as $function) {
            self::assertStringContainsString(
                "$function() has no effect on a response outside of a realm: return header fields and status in the Response, or serve the application by Weft\\Http\\RealmHandler or Weft\\Bridge\\Symfony\\SymfonyHandler",
                $server->get("/$function"),
            );
        }
        self::assertSame('[false,[]]', self::bodyOf($server->get('/reads')));
    }

    public function testAResponseIsSentAfterWhatTheApplicationHasPrintedAndSetByHeader(): void
    {
        $server = $this->serve(<<<'PHP'
            $routes->fallback(new Weft\Http\RealmHandler(static fn() => static function (Request $request) {
                header('X-A: 1');
                setcookie('seen', '1');
                header('Content-Type: text/plain');
                http_response_code(500);
                echo 'printed ', filter_input(INPUT_GET, 'q'), ' ';
                return new Response(201, ['content-type' => 'text/css', 'x-a' => '2', 'set-cookie' => 'b=c'], 'returned');
            }, 1));
            PHP);

        $response = $server->get('/?q=asked');

        self::assertStatus(201, $response);
        self::assertSame('printed asked returned', self::bodyOf($response));
        self::assertStringContainsString("x-a: 1\r\nx-a: 2\r\n", $response);
        self::assertStringContainsString("set-cookie: seen=1\r\nset-cookie: b=c\r\n", $response);
        self::assertSame('text/css', self::field($response, 'content-type'));
    }

    /** As under PHP-FPM, in each request. */
    public function testTheStatusIs200BeforeOneIsSet(): void
    {
        $server = $this->serve('$routes->fallback(new Weft\Http\RealmHandler(static fn() => static function () { echo json_encode([http_response_code(), http_response_code(404)]); }, 1));');

        foreach (['/first', '/second'] as $path) {
            $response = $server->get($path);
            self::assertStatus(404, $response);
            self::assertSame('[200,200]', self::bodyOf($response));
        }
    }

    public function testAStreamedBodyIsMadeInTheRealmAndItsFailureReplacesTheInstance(): void
    {
        $server = $this->serve(<<<'PHP'
            $GLOBALS['booted'] = 0;
            $routes->fallback(new Weft\Http\RealmHandler(static function () {
                $number = ++$GLOBALS['booted'];
                return static fn() => new Response(200, [], static function (BodyWriter $writer) use ($number) {
                    delay(0.005);
                    $writer->write("$number " . ($_GET['n'] ?? 'none'));
                    if (isset($_GET['fail'])) { throw new LogicException('on purpose'); }
                });
            }, 1));
            PHP);

        self::assertStringContainsString('1 a', $server->curl('/?n=a')[1]);
        self::assertStringContainsString('1 b', $server->curl('/?n=b')[1]);
        $server->curl('/?n=c&fail=1');
        self::assertStringContainsString('2 d', $server->curl('/?n=d')[1]);
    }

    /** @dataProvider bodies */
    #[DataProvider('bodies')]
    public function testTheWholeBodyLeavesBeforeATerminateThatDoesNotWait(string $body, string $end): void
    {
        $server = $this->serve(<<<PHP
            file_put_contents(\$file = sys_get_temp_dir() . '/weft-file-' . getmypid(), str_repeat('x', 300_000) . 'the end');
            register_shutdown_function(static fn() => unlink(\$file));
            \$pool = new Weft\Http\ApplicationPool(static fn() => new stdClass(), 1);
            \$routes->fallback(static fn(Request \$request) => \$pool->serve(\$request, static fn() => $body, static function () {
                // usleep() would let other tasks run.
                for (\$until = hrtime(true) + 10e9; hrtime(true) < \$until && !file_exists(getenv('WEFT_TEST_GATES') . '.busy');) { clearstatcache(); }
                error_log('terminated');
            }));
            PHP);
        $socket = $server->connect();
        \stream_set_timeout($socket, (int) Timing::DEADLINE);
        \fwrite($socket, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");

        for ($response = ''; !\str_ends_with($response, $end) && ($piece = (string) \fread($socket, 65_536)) !== '';) {
            $response .= $piece;
        }

        self::assertStringNotContainsString('terminated', $server->log());
        self::assertStringEndsWith($end, $response, \substr($response, 0, 200));
        $server->open('busy');
        self::assertTrue($server->awaitLog('terminated'));
    }

    public static function bodies(): iterable
    {
        yield 'a file' => ['Response::file($file)', 'the end'];
        yield 'a stream that has waited' => [
            'new Response(200, [], static function (BodyWriter $writer) { $writer->write("begun "); delay(0.05); $writer->write("the end"); })',
            "the end\r\n0\r\n\r\n",
        ];
    }

    public function testASessionIsClosedWhenItsRequestFails(): void
    {
        $server = $this->serve(<<<'PHP'
            $GLOBALS['directory'] = sys_get_temp_dir() . '/weft-sessions-' . getmypid();
            mkdir($GLOBALS['directory']);
            register_shutdown_function(static fn() => [array_map(unlink(...), glob($GLOBALS['directory'] . '/*')), rmdir($GLOBALS['directory'])]);
            $routes->fallback(new Weft\Http\RealmHandler(static function () {
                ini_set('session.save_path', $GLOBALS['directory']);
                ini_set('session.use_strict_mode', '0');
                return static function () {
                    session_start();
                    $_SESSION['hits'] = ($_SESSION['hits'] ?? 0) + 1;
                    if (isset($_GET['fail'])) { throw new LogicException('on purpose'); }
                    delay(0.01);
                    echo $_SESSION['hits'];
                };
            }, 4));
            PHP);

        $cookie = ['-b', 'PHPSESSID=aaaaaaaaaaaaaaaaaaaaaaaaaa'];
        self::assertSame('1', self::bodyOf($server->get('/', ...$cookie)));
        self::assertStatus(500, $server->get('/?fail=1', ...$cookie));
        // As under PHP-FPM, what it has set by then is kept. Requests of one session run one after the other, in realms of their own.
        $sockets = [];
        for ($n = 0; $n < 4; $n++) {
            $sockets[] = $socket = $server->connect();
            \fwrite($socket, "GET / HTTP/1.1\r\nHost: a\r\nCookie: PHPSESSID=aaaaaaaaaaaaaaaaaaaaaaaaaa\r\nConnection: close\r\n\r\n");
        }
        $hits = \array_map(static fn($socket): int => (int) self::bodyOf(ServerProcess::readAll($socket)), $sockets);
        \sort($hits);
        self::assertSame([3, 4, 5, 6], $hits);
        $server->stop();
    }

    /** Each is a setting of its own: what the boot sets, what a request sets, and what shows it. */
    private const SETTINGS = [
        ['ini_set("precision", "10")', 'ini_set("precision", "5")', 'ini_get("precision")', '10'],
        ['', 'ini_set("include_path", "/nowhere")', 'ini_get("include_path") === "/nowhere"', false],
        ['', 'ini_set("session.name", "OTHER")', 'session_name()', 'PHPSESSID'],
        ['', 'session_set_cookie_params(["path" => "/other"])', 'session_get_cookie_params()["path"]', '/'],
        ['', 'set_time_limit(1)', 'ini_get("max_execution_time")', '0'],
        ['error_reporting(E_ERROR | E_WARNING)', 'error_reporting(E_ERROR)', 'error_reporting()', \E_ERROR | \E_WARNING],
        ['date_default_timezone_set("Europe/Vienna")', 'date_default_timezone_set("Asia/Tokyo")', 'date_default_timezone_get()', 'Europe/Vienna'],
        ['', 'setlocale(LC_ALL, "C")', 'escapeshellarg("ö")', "'ö'"],
        ['$_ENV["MODE"] = "boot"', '$_ENV["MODE"] = "request"', '$_ENV["MODE"]', 'boot'],
        ['mb_internal_encoding("ISO-8859-15")', 'mb_internal_encoding("ISO-8859-1")', 'mb_internal_encoding()', 'ISO-8859-15'],
    ];

    public function testWhatARequestSetsIsForgottenAndWhatTheBootHasSetIsNot(): void
    {
        [$boot, $set, $show, $expected] = \array_map(static fn(int $at): array => \array_column(self::SETTINGS, $at), [0, 1, 2, 3]);
        $server = $this->serve(
            \sprintf(
                '$routes->fallback(new Weft\Http\RealmHandler(static function () { %s; return static function () { if ($_GET !== []) { %s; } echo json_encode([%s]); }; }, 1));',
                \implode('; ', $boot),
                \implode('; ', $set),
                \implode(', ', $show),
            ),
            extensions: ['mbstring'],
        );

        self::assertSame($expected, \json_decode(self::bodyOf($server->get('/')), true));
        $changed = \json_decode(self::bodyOf($server->get('/?set=1')), true);
        foreach ($expected as $at => $value) {
            self::assertNotSame($value, $changed[$at], $set[$at]);
        }
        self::assertSame($expected, \json_decode(self::bodyOf($server->get('/')), true));
    }

    public function testWhatWorkWithoutARequestSetsIsNotTakenForTheBoots(): void
    {
        $server = $this->serve(<<<'PHP'
            $pool = new Weft\Http\ApplicationPool(static function () { ini_set('precision', '10'); return new stdClass(); }, 1);
            $routes->get('/with', static fn() => Response::text($pool->with(static fn() => ini_set('precision', '5'))));
            $routes->fallback(static fn(Request $request) => $pool->serve($request, static function () { echo ini_get('precision'); }));
            PHP);

        self::assertSame('10', self::bodyOf($server->get('/with')), 'the value before');
        self::assertSame('10', self::bodyOf($server->get('/')));
    }

    public function testARequestDoesNotFindTheLastErrorOfAnother(): void
    {
        $server = $this->serve('$routes->fallback(new Weft\Http\RealmHandler(static fn() => static function () { echo json_encode(error_get_last()); @trigger_error("of a request"); }, 1));');

        self::assertSame(['null', 'null'], [self::bodyOf($server->get('/')), self::bodyOf($server->get('/'))]);
    }

    public function testARequestDoesNotFindTheLastErrorOfOneThatRunsBesideIt(): void
    {
        $server = $this->serve(<<<'PHP'
            $gate = new Weft\Runtime\Channel(1);
            $routes->get('/open', static fn() => [$gate->send(true)]);
            $routes->fallback(new Weft\Http\RealmHandler(static fn() => static function () use ($gate) {
                if (isset($_GET['own'])) { @trigger_error('own'); }
                if (isset($_GET['wait'])) { error_log('waits'); $gate->receive(); }
                echo json_encode(error_get_last()['message'] ?? null);
                @trigger_error("other");
            }, 2));
            PHP);
        foreach (['/?wait=1' => 'null', '/?wait=1&own=1' => '"own"'] as $path => $expected) {
            $waiting = $server->connect();
            \fwrite($waiting, "GET $path HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
            self::assertTrue($server->awaitLog('waits'));

            self::assertSame('null', self::bodyOf($server->get('/')));
            $server->get('/open');

            self::assertSame($expected, self::bodyOf(ServerProcess::readAll($waiting)));
        }
    }

    public function testTheSessionHandlerOfTheBootStaysWhenARequestSetsAnything(): void
    {
        $server = $this->serve(<<<'PHP'
            final class KeptSessions extends SessionHandler {
                public static int $opened = 0;
                public function open(string $path, string $name): bool { self::$opened++; return true; }
                public function read(string $id): string { return ''; }
                public function write(string $id, string $data): bool { return true; }
                public function close(): bool { return true; }
                public function gc(int $seconds): int|false { return 0; }
                public function create_sid(): string { return bin2hex(random_bytes(16)); }
            }
            $routes->fallback(new Weft\Http\RealmHandler(static function () {
                session_set_save_handler(new KeptSessions());
                set_error_handler(static fn(int $level, string $message) => throw new ErrorException($message));
                return static function () {
                    session_start();
                    ini_set('precision', '7');
                    isset($_GET['files']) && [session_write_close(), ini_set('session.save_handler', 'files')];
                    echo KeptSessions::$opened, ' ', ini_get('session.save_handler');
                };
            }, 1));
            PHP);

        self::assertSame(
            ['1 user', '2 user', '3 files', '4 user'],
            \array_map(static fn(string $path): string => self::bodyOf($server->get($path)), ['/', '/', '/?files=1', '/']),
            $server->log(),
        );
    }

    public function testTheSessionHandlerOfTheBootIsBackAfterARequestHasSetAnother(): void
    {
        $server = $this->serve(<<<'PHP'
            class BootSessions extends SessionHandler {
                public static string $opened = '';
                public function open(string $path, string $name): bool { self::$opened .= static::class . ' '; return true; }
                public function read(string $id): string { return ''; }
                public function write(string $id, string $data): bool { return true; }
                public function close(): bool { return true; }
                public function gc(int $seconds): int|false { return 0; }
                public function create_sid(): string { return bin2hex(random_bytes(16)); }
            }
            final class OwnSessions extends BootSessions {}
            $routes->fallback(new Weft\Http\RealmHandler(static function () {
                session_set_save_handler(new BootSessions());
                return static function () {
                    isset($_GET['own']) && session_set_save_handler(new OwnSessions());
                    session_start();
                    echo BootSessions::$opened;
                    BootSessions::$opened = '';
                };
            }, 1));
            PHP);

        self::assertSame(
            ['BootSessions ', 'OwnSessions ', 'BootSessions ', 'OwnSessions ', 'BootSessions '],
            \array_map(static fn(string $path): string => self::bodyOf($server->get($path)), ['/', '/?own=1', '/', '/?own=1', '/']),
            $server->log(),
        );
    }

    public function testHandlersOfErrorsAndExceptionsThatARequestHasSetAreNotThoseOfTheNext(): void
    {
        $server = $this->serve(<<<'PHP'
            final class Handler {
                public static int $alive = 0;
                public function __construct(private string $name) { self::$alive++; }
                public function __invoke(): string { return $this->name; }
                public function __destruct() { self::$alive--; }
            }
            $routes->fallback(new Weft\Http\RealmHandler(static function () {
                set_error_handler(new Handler('first'));
                set_error_handler(new Handler('second'), E_WARNING);
                set_exception_handler(new Handler('exceptions'));
                return static function () {
                    isset($_GET['without']) && [restore_error_handler(), restore_error_handler(), restore_exception_handler()];
                    $names = [];
                    foreach (['request', 'request again'] as $name) {
                        array_push($names, set_error_handler(new Handler($name)), set_exception_handler(new Handler($name)));
                    }
                    echo json_encode([array_map(static fn ($handler) => $handler === null ? null : $handler(), $names), Handler::$alive]);
                };
            }, 1));
            PHP);

        // What the first request has set stays: it may be the one that boots the application.
        $first = '[["second","exceptions","request","request"],7]';
        $usual = '[["request again","request again","request","request"],11]';
        $without = '[["second","request","request","request"],11]';
        self::assertSame(
            [$first, $usual, $without, $usual, $without, $usual],
            \array_map(static fn(string $path): string => self::bodyOf($server->get($path)), ['/', '/', '/?without=1', '/', '/?without=1', '/']),
            $server->log(),
        );
    }

    public function testAnErrorHandlerThatIsConfiguredInTheFirstRequestStaysSo(): void
    {
        $server = $this->serve(<<<'PHP'
            final class Errors {
                public bool $isConfigured = false;
                public array $seen = [];
                public function handle(int $level): bool { $this->seen[] = $level; return true; }
                // As Symfony's handler registers itself again.
                public function configure(): void { restore_error_handler(); set_error_handler([$this, 'handle'], E_ALL); $this->isConfigured = true; }
            }
            $routes->fallback(new Weft\Http\RealmHandler(static function () {
                $errors = new Errors();
                set_error_handler([$errors, 'handle'], E_USER_ERROR);
                return static function () use ($errors) {
                    $errors->isConfigured || $errors->configure();
                    $errors->seen = [];
                    trigger_error('notice', E_USER_NOTICE);
                    echo json_encode($errors->seen);
                };
            }, 1));
            PHP);

        self::assertSame(['[1024]', '[1024]'], [self::bodyOf($server->get('/')), self::bodyOf($server->get('/'))], $server->log());
    }

    public function testWhatThrowsWhenItIsDestroyedAfterItsRequestDoesNotFailTheNextOne(): void
    {
        $server = $this->serve(<<<'PHP'
            final class Throwing {
                public function __invoke(): bool { return true; }
                public function __destruct() { throw new DomainException('cannot be destroyed'); }
            }
            $routes->fallback(new Weft\Http\RealmHandler(static function () {
                set_error_handler(static fn(int $level, string $message) => throw new ErrorException($message));
                return static function () {
                    isset($_GET['set']) && [set_error_handler(new Throwing()), set_exception_handler(new Throwing())];
                    isset($_GET['keep']) && $_GET['kept'] = new Throwing();
                    echo json_encode(error_get_last());
                };
            }, 1));
            PHP);

        self::assertSame(
            ['null', 'null', 'null', 'null', 'null'],
            \array_map(static fn(string $path): string => self::bodyOf($server->get($path)), ['/', '/?set=1', '/', '/?keep=1', '/']),
            $server->log(),
        );
        self::assertSame(3, \substr_count($server->log(), 'DomainException: cannot be destroyed'), $server->log());
        $server->signal();
        self::assertSame(0, $server->stop()[0], 'the exit code');
    }

    public function testASettingThatCannotBePutBackDoesNotFailTheNextRequest(): void
    {
        $server = $this->serve(<<<'PHP'
            $routes->fallback(new Weft\Http\RealmHandler(static function () {
                ini_set('memory_limit', (memory_get_usage(true) >> 20) + 16 . 'M');
                set_error_handler(static fn(int $level, string $message) => throw new ErrorException($message));
                $held = '';
                return static function () use (&$held) {
                    ini_set('memory_limit', '1G');
                    $held = $held ?: str_repeat('x', 64 << 20);
                    echo json_encode(error_get_last());
                };
            }, 1));
            PHP);

        self::assertSame(['null', 'null', 'null'], \array_map(static fn(): string => self::bodyOf($server->get('/')), [1, 2, 3]), $server->log());
    }

    public function testRegularExpressionsFollowTheLocaleThatIsPutBack(): void
    {
        $locales = \sys_get_temp_dir() . '/weft-locales-' . \bin2hex(\random_bytes(6));
        \mkdir($locales);
        try {
            \exec("localedef -i de_DE -f ISO-8859-1 $locales/de_DE 2>&1", $output, $code);
            $code === 0 || self::markTestSkipped('No locale can be made: the package locales is not installed');
            $server = $this->serve(<<<PHP
                putenv('LOCPATH=$locales');
                \$routes->fallback(new Weft\Http\RealmHandler(static fn() => static function () {
                    isset(\$_GET['german']) && setlocale(LC_ALL, 'de_DE');
                    echo preg_match('/^\w$/', "\xe4");
                }, 1));
                PHP);

            self::assertSame(['0', '1', '0', '1'], \array_map(static fn(string $path): string => self::bodyOf($server->get($path)), ['/', '/?german=1', '/', '/?german=1']));
        } finally {
            \exec('rm -rf ' . \escapeshellarg($locales));
        }
    }

    public function testHeaderFieldsAreThereAsUnderPhpFpm(): void
    {
        $server = $this->serve('$routes->fallback(new Weft\Http\RealmHandler(static fn() => static function () { echo json_encode([getallheaders(), apache_request_headers()]); }, 1));');

        [$all, $alias] = \json_decode(self::bodyOf($server->get('/', '-H', 'X-Request-ID: 7', '-H', 'Content-Type: text/plain', '-d', 'body')), true);

        self::assertSame('7', $all['X-Request-Id']);
        self::assertSame(['text/plain', '4'], [$all['Content-Type'], $all['Content-Length']]);
        self::assertStringStartsWith('127.0.0.1:', $all['Host']);
        self::assertSame($all, $alias);
    }

    public function testShutdownFunctionsOfARequestRunAtItsEndAndThoseOfTheBootDoNot(): void
    {
        $server = $this->serve(<<<'PHP'
            $pool = new Weft\Http\ApplicationPool(static function () {
                register_shutdown_function(static fn() => error_log('of the boot'));
                return new stdClass();
            }, 1);
            $routes->get('/plain', static fn(Request $request) => $pool->serve($request, static function () { register_shutdown_function(static fn() => print('end of ' . $_GET['n'])); echo 'body '; }));
            $routes->get('/terminating', static fn(Request $request) => $pool->serve(
                $request,
                static function () { register_shutdown_function(static fn() => error_log('end of ' . $_GET['n'])); echo 'body'; },
                static function () { error_log('terminate ' . $_GET['n']); echo 'lost'; },
            ));
            PHP);

        self::assertSame('body end of a', self::bodyOf($server->get('/plain?n=a')));
        self::assertSame('body end of b', self::bodyOf($server->get('/plain?n=b')));
        self::assertSame('body', self::bodyOf($server->get('/terminating?n=c')));
        self::assertTrue($server->awaitLog('end of c'));
        self::assertMatchesRegularExpression('~terminate c.*end of c~s', $server->log());
        self::assertStringNotContainsString('of the boot', $server->log());
    }

    /** @dataProvider exits */
    #[DataProvider('exits')]
    public function testExitEndsTheRequestWithWhatItHasPrintedAndNotTheProcess(string $code, string $body, int $status = 200): void
    {
        $server = $this->serve(<<<PHP
            final class Application {
                public function leave(): string { exit('left'); }
            }
            \$pool = new Weft\\Http\\ApplicationPool(static fn() => new Application(), 2);
            \$routes->get('/exits', static fn(Request \$request) => \$pool->serve(\$request, static function (Application \$application): ?Response {
                $code
            }, static fn() => error_log('terminated ' . (\$_GET['n'] ?? 'none'))));
            \$routes->get('/other', static fn(Request \$request) => \$pool->serve(\$request, static function (Application \$application) use (\$pool): void {
                error_log("begun \$_GET[n]");
                while (\$_GET['n'] === 'b' && \$pool->stats()['exited'] === 0) { delay(0.001); }
                echo \$_GET['n'], ' in ', getmypid();
            }, static fn() => null));
            \$routes->get('/stats', static fn() => Response::json(array_intersect_key(\$pool->stats(), array_flip(['failed', 'exited']))));
            PHP);
        $process = \preg_match('/in (\d+)$/', self::bodyOf($server->get('/other?n=a')), $found) === 1 ? $found[1] : '';
        $other = $server->connect();
        \fwrite($other, "GET /other?n=b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        self::assertTrue($server->awaitLog('begun b'));

        $exited = $server->get('/exits?n=c');

        self::assertStatus($status, $exited);
        self::assertSame($body, self::bodyOf($exited));
        self::assertSame("b in $process", self::bodyOf(ServerProcess::readAll($other)));
        self::assertSame("d in $process", self::bodyOf($server->get('/other?n=d')));
        self::assertSame(['failed' => 0, 'exited' => 1], \json_decode(self::bodyOf($server->get('/stats')), true));
        self::assertStringNotContainsString('terminated', $server->log());
    }

    public static function exits(): iterable
    {
        yield 'nothing printed' => ['exit;', ''];
        yield 'a text' => ['echo "before "; die("and a text");', 'before and a text'];
        yield 'a status of the process, and one of the response' => ['http_response_code(403); echo "no"; exit(3);', 'no', 403];
        yield 'after a wait' => ['echo "before"; delay(0.01); exit();', 'before'];
        yield 'in open buffers' => ['echo 1; ob_start(); echo 2; ob_start(static fn (string $text) => strtoupper($text)); echo "a"; exit("b");', '12AB'];
        yield 'in a method' => ['$text = $application->leave(); echo $text;', 'left'];
        yield 'in a callback of PHP' => ['echo implode(array_map(static fn (int $n) => $n === 2 ? exit("two") : $n, [1, 2, 3]));', 'two'];
        yield 'in a generator' => ['$made = (static function () { yield 1; exit("end"); })(); foreach ($made as $n) { echo $n; }', '1end'];
        yield 'in a Fiber' => ['$fiber = new Fiber(static function () { Fiber::suspend(1); exit; }); echo $fiber->start(); $fiber->resume(); echo "after";', '1'];
        yield 'not caught' => ['try { echo "try "; exit("exit"); } catch (Throwable $caught) { echo get_class($caught); }', 'try exit'];
        yield 'finally blocks run' => ['try { exit("exit "); } finally { delay(0.001); echo "finally"; }', 'exit finally'];
        yield 'a finally block that discards its buffer' => ['ob_start(); try { exit("exit"); } finally { ob_end_clean(); }', 'exit'];
        yield 'a finally block that returns' => ['$leave = static function () { try { exit("exit "); } finally { return 1; } }; $leave(); echo "goes on"; return Response::text("response");', 'exit goes on'];
        yield 'shutdown functions run' => ['register_shutdown_function(static fn () => print(" shutdown " . $_GET["n"])); exit("exit");', 'exit shutdown c'];
        yield 'in a shutdown function' => ['register_shutdown_function(static fn () => exit(" first")); register_shutdown_function(static fn () => print("second")); exit("exit");', 'exit first'];
    }

    public function testTheBuffersOfTheServerAreHiddenFromTheApplication(): void
    {
        $server = $this->serve(<<<'PHP'
            $look = static fn(): string => json_encode([
                ob_get_level(), ob_list_handlers(), ob_get_status(), ob_get_status(true),
                @ob_end_clean(), @ob_end_flush(), @ob_get_clean(), @ob_get_flush(), ob_flush(),
            ]);
            // A function with a name: versions of PHP name closures differently.
            function unchanged(string $text): string
            {
                return $text;
            }
            $own = static function (): string {
                ob_start('unchanged');
                ob_start();
                echo 'flushed ';
                ob_flush();
                $seen = [ob_get_level(), ob_list_handlers(), ob_get_status()['level'], array_column(ob_get_status(true), 'level')];
                echo 'closed';
                ob_end_flush();
                return json_encode([...$seen, ob_get_contents(), ob_end_clean()]);
            };
            $pool = new Weft\Http\ApplicationPool(static fn() => new stdClass(), 1);
            foreach (['none' => $look, 'own' => $own] as $name => $seen) {
                $routes->get("/$name/task", static fn() => Response::text($seen()));
                $routes->get("/$name/request", static fn(Request $request) => $pool->serve($request, static function () use ($seen): void {
                    echo 'printed ';
                    echo $seen();
                }, static fn() => error_log("$name at the end: {$seen()}")));
                $routes->get("/$name/stream", static fn(Request $request) => $pool->serve($request, static fn() => new Response(200, [], static function (BodyWriter $writer) use ($seen): void {
                    Weft\Http\Internal\StreamedOutput::copy(static fn() => print('printed ' . $seen()), $writer);
                })));
            }
            PHP);

        foreach (['none' => '[0,[],[],[],false,false,false,false,true]', 'own' => '[2,["unchanged","default output handler"],1,[0,1],"flushed closed",true]'] as $name => $seen) {
            self::assertSame($seen, self::bodyOf($server->get("/$name/task")));
            self::assertSame("printed $seen", self::bodyOf($server->get("/$name/request")));
            self::assertTrue($server->awaitLog("$name at the end: $seen"), $server->log());
            self::assertSame("printed $seen", $server->curl("/$name/stream")[1]);
        }
    }

    public function testASessionIsSavedAndFreeAfterExit(): void
    {
        $server = $this->serve(<<<'PHP'
            $GLOBALS['folder'] = sys_get_temp_dir() . '/weft-sessions-' . getmypid();
            mkdir($GLOBALS['folder']);
            register_shutdown_function(static fn() => [array_map(unlink(...), glob($GLOBALS['folder'] . '/*')), rmdir($GLOBALS['folder'])]);
            $routes->fallback(new Weft\Http\RealmHandler(static function () {
                ini_set('session.save_path', $GLOBALS['folder']);
                ini_set('session.use_strict_mode', '0');
                return static function () {
                    session_start();
                    $_SESSION['hits'] = ($_SESSION['hits'] ?? 0) + 1;
                    exit((string) $_SESSION['hits'] . ' ');
                };
            }, 4));
            PHP);

        $cookie = ['-b', 'PHPSESSID=aaaaaaaaaaaaaaaaaaaaaaaaaa'];
        self::assertSame(['1 ', '2 ', '3 '], \array_map(static fn(): string => self::bodyOf($server->get('/', ...$cookie)), [1, 2, 3]));
        $server->stop();
    }

    public function testExitInAStreamedBodyEndsTheBody(): void
    {
        $server = $this->serve(<<<'PHP'
            $pool = new Weft\Http\ApplicationPool(static fn() => new stdClass(), 1);
            $routes->get('/function', static fn(Request $request) => $pool->serve($request, static fn() => new Response(200, [], static function (BodyWriter $writer) {
                register_shutdown_function(static fn() => error_log('end of ' . $_GET['n']));
                $writer->write('one ');
                delay(0.001);
                $writer->write('two');
                exit;
            }), static fn() => error_log('terminated')));
            $routes->get('/generator', static fn(Request $request) => $pool->serve($request, static fn() => new Response(200, [], (static function () { yield 'three '; yield 'four'; exit; })())));
            $routes->get('/stats', static fn() => Response::json(array_intersect_key($pool->stats(), array_flip(['failed', 'exited']))));
            PHP);

        self::assertSame('one two', $server->curl('/function?n=a')[1]);
        self::assertTrue($server->awaitLog('end of a'));
        self::assertSame('three four', $server->curl('/generator')[1]);
        self::assertSame(['failed' => 0, 'exited' => 2], \json_decode(self::bodyOf($server->get('/stats')), true));
        self::assertStringNotContainsString('terminated', $server->log());
    }

    public function testExitAfterTheResponseEndsWhatRunsThen(): void
    {
        $server = $this->serve(<<<'PHP'
            $pool = new Weft\Http\ApplicationPool(static fn() => new stdClass(), 1);
            $routes->get('/', static fn(Request $request) => $pool->serve($request, static fn() => Response::text('sent'), static function () {
                register_shutdown_function(static fn() => error_log('end of ' . $_GET['n']));
                exit(7);
            }));
            PHP);

        self::assertSame('sent', self::bodyOf($server->get('/?n=a')));
        self::assertTrue($server->awaitLog('end of a'));
        self::assertSame('sent', self::bodyOf($server->get('/?n=b')));
    }

    public function testWorkThatExitsOutsideOfRequestsFails(): void
    {
        $seen = self::program(<<<'PHP'
            $try = static function (Closure $work) { try { return $work(); } catch (Weft\Runtime\ExitException $exited) { return $exited->getMessage(); } };
            $pool = new ApplicationPool($boot, 1);
            $seen[] = $try(static fn() => $pool->with(static fn() => exit(3)));
            $seen[] = $try(static fn() => $pool->with(static fn() => [1, $try(static fn() => all([static fn() => exit()]))]));
            $seen[] = $pool->stats()['booted'];
            try {
                (new ApplicationPool(static fn() => exit(), 1))->borrow();
            } catch (Weft\Pool\FactoryException $failed) {
                $seen[] = $failed->getPrevious()->getMessage();
            }
            PHP);

        $message = 'exit() was called in a realm: it ends this task or call, and not the process';
        self::assertSame([$message, [1, $message], 2, $message], $seen);
    }

    /**
     * @param string $code runs in a task and fills `$seen`
     * @param list<string> $options of PHP
     *
     * @return list<mixed>
     */
    private static function program(string $code, array $options = []): array
    {
        $ended = Subprocess::run(self::APPLICATION . "\n\$seen = [];\nrun(static function () use (\$boot, \$number, &\$seen) {\n$code\n});\necho json_encode(\$seen);", options: $options);
        self::assertSame([0, ''], [$ended->exitCode, $ended->errors], $ended->output);

        return \json_decode($ended->output, true, flags: \JSON_THROW_ON_ERROR);
    }
}
