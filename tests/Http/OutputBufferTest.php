<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Tests\Runtime\Subprocess;
use Weft\Tests\Timing;

/** Tasks that wait in the callback of an output buffer of theirs. */
final class OutputBufferTest extends HttpTestCase
{
    /** `/wait/{name}` waits in the callback of a buffer for the gate of that name, and answers with what it has printed. */
    private const WAITS = <<<'PHP'
        $routes->get("/wait/{name}", static function (string $name) {
            ob_start();
            ob_start(static function (string $text) use ($name): string { fwrite(STDERR, "in $name\n"); gate($name); return strtoupper($text); });
            echo "<$name ";
            ob_start();
            echo "inner";
            ob_end_flush();
            echo " $name>";
            ob_end_flush();
            return Response::text(ob_get_clean() . ob_get_level());
        });
        $routes->get("/page", static function () { ob_start(); echo "page"; ob_start(static fn(string $text): string => "[$text]"); echo "part"; ob_end_flush(); return Response::text(ob_get_clean()); });
        $routes->get("/loud", static function () { echo "beside"; return Response::text("answer"); });
        PHP;

    public function testCallbacksWaitAtTheSameTimeWhileOthersPrint(): void
    {
        $server = $this->serve(self::WAITS);
        $sockets = [];
        foreach (['a', 'b', 'c'] as $name) {
            $sockets[$name] = self::send($server, "/wait/$name");
            self::assertTrue($server->awaitLog("in $name"));
        }

        self::assertSame('page[part]', self::bodyOf($server->get('/page')));
        foreach (['b', 'a', 'c'] as $name) {
            $server->open($name);
            $upper = strtoupper($name);
            self::assertSame("<$upper INNER $upper>0", self::bodyOf(ServerProcess::readAll($sockets[$name])));
            self::assertSame('page[part]', self::bodyOf($server->get('/page')));
        }
        self::assertSame("in a\nin b\nin c\n", $server->log());
    }

    public function testEachOperationOfABufferGoesOnAfterTheWait(): void
    {
        $server = $this->serve(<<<'PHP'
            $routes->get("/{name}", static function (string $name) {
                $pass = static function (string $text, int $phase) use ($name): string { delay($name === "a" ? 0.003 : 0.001); return $text === "" ? "" : "[$text]"; };
                ob_start();
                // The lower one is called while ob_flush() holds the upper one off the stack, and for each piece that the upper one lets through.
                ob_start($pass, 1);
                ob_start($pass, 4);
                foreach (["1", "23", "456", "7890"] as $piece) {
                    echo "$name$piece";
                    ob_flush();
                }
                echo "end";
                $status = array_column(ob_get_status(true), "level");
                ob_clean();
                echo "last";
                ob_end_flush();
                echo ob_get_level();
                ob_end_clean();
                echo json_encode($status);
                return Response::text(ob_get_clean() . ob_get_level());
            });
            PHP);
        $expected = static fn(string $name): string => "[[{$name}1]][[{$name}23]][[{$name}456]][[{$name}7890]][[last]][2][0,1,2]0";
        $sockets = [];
        foreach (['a', 'b', 'c', 'd'] as $name) {
            $sockets[$name] = self::send($server, "/$name");
        }

        foreach ($sockets as $name => $socket) {
            self::assertSame($expected($name), self::bodyOf(ServerProcess::readAll($socket)));
        }
        self::assertSame('', $server->log());
    }

    public function testACancellationInACallbackIsThrownByTheOutputAndOtherBuffersStayAsTheyAre(): void
    {
        $server = $this->serve(self::WAITS . <<<'PHP'
            $routes->get("/late", static function () {
                ob_start();
                ob_start(static function (string $text): string { delay(600); return $text; }, 1);
                try {
                    Weft\timeout(0.01, static function () { echo "never"; return ""; });
                } catch (Throwable $late) {
                    return Response::text($late::class);
                }
            });
            $routes->get("/lost", static function () {
                ob_start(static function (string $text): string { delay(0.001); throw new LogicException("in a callback"); }, 1);
                echo "lost";
            });
            PHP);
        $waiting = self::send($server, '/wait/a');
        self::assertTrue($server->awaitLog('in a'));

        self::assertSame('Weft\Runtime\TimeoutException', self::bodyOf($server->get('/late')));
        self::assertStatus(500, $server->get('/lost'));
        self::assertTrue($server->awaitLog('LogicException: in a callback'), $server->log());

        $server->open('a');
        self::assertSame('<A INNER A>0', self::bodyOf(ServerProcess::readAll($waiting)));
        self::assertSame('page[part]', self::bodyOf($server->get('/page')));
        self::assertSame('answer', self::bodyOf($server->get('/loud')));
        self::assertTrue($server->awaitLog(': beside'), $server->log());
    }

    /** @dataProvider exits */
    #[DataProvider('exits')]
    public function testExitInACallbackAfterAWaitEndsTheRequestAlone(string $exit): void
    {
        $server = $this->serve(self::WAITS . <<<'PHP'
            $pool = new Weft\Http\ApplicationPool(static fn() => new stdClass(), 2);
            $routes->get("/exits", static fn(Request $request) => $pool->serve($request, static function (): void {
            PHP . $exit . '}));');
        $waiting = self::send($server, '/wait/a');
        self::assertTrue($server->awaitLog('in a'));

        self::assertSame('before text', self::bodyOf($server->get('/exits')), $server->log());
        self::assertSame('before text', self::bodyOf($server->get('/exits')), $server->log());
        $server->open('a');
        self::assertSame('<A INNER A>0', self::bodyOf(ServerProcess::readAll($waiting)));
        self::assertSame('page[part]', self::bodyOf($server->get('/page')));
    }

    public static function exits(): iterable
    {
        yield 'of one buffer' => ['echo "before "; ob_start(static function (string $text): string { delay(0.001); exit; }); echo "text"; ob_end_flush(); echo "after";'];
        yield 'of one below another' => ['echo "before "; ob_start(static function (string $text): string { delay(0.001); exit; }, 1); ob_start(); echo "text"; ob_end_flush(); echo "after";'];
    }

    public function testExitOfTheProcessInACallbackLetsOthersFinish(): void
    {
        $server = $this->serve(self::WAITS . '$routes->get("/exits", static function () { ob_start(static function (string $text): string { delay(0.001); exit(3); }); echo "x"; ob_end_flush(); });');
        $waiting = self::send($server, '/wait/a');
        self::assertTrue($server->awaitLog('in a'));

        self::assertStatus(500, $server->get('/exits'));
        $server->open('a');

        self::assertStringEndsWith('<A INNER A>0', ServerProcess::readAll($waiting));
        self::assertSame(3, $server->end()[0]);
    }

    public function testAFatalErrorInACallbackEndsTheProcessAsElsewhere(): void
    {
        $server = $this->serve(self::WAITS . '$routes->get("/fatal", static function () { ob_start(static function (string $text): string { delay(0.001); ini_set("memory_limit", "40M"); return str_repeat("x", 1 << 30); }); echo "x"; ob_end_flush(); });');
        $waiting = self::send($server, '/wait/a');
        self::assertTrue($server->awaitLog('in a'));

        $server->get('/fatal');

        self::assertStringNotContainsString('<A', ServerProcess::readAll($waiting));
        // Since PHP 8.6 the stack trace of the error is an error itself there, "Cannot use output buffering in output buffering display handlers", and hides the first one.
        self::assertTrue($server->awaitLog('critical GET /fatal'), $server->log());
        self::assertSame(255, $server->end()[0]);
    }

    public function testATaskThatIsLeftInACallbackUnwindsWithItsOwnBuffers(): void
    {
        $server = $this->serve(self::WAITS . <<<'PHP'
            $routes->get("/stays", static function () {
                ob_start();
                echo "outer";
                ob_start(static function (string $text): string {
                    try {
                        fwrite(STDERR, "stays\n");
                        while (true) {
                            try { (new Weft\Runtime\Channel(1))->receive(); } catch (Throwable) {}
                        }
                    } finally {
                        fwrite(STDERR, "unwound in a callback\n");
                    }
                });
                ob_start();
                echo "inner";
                try {
                    ob_end_flush();
                    ob_end_flush();
                } finally {
                    fwrite(STDERR, "the buffer below has " . ob_get_contents() . "\n");
                }
            });
            PHP, app: 'grace: 0.05');
        $client = self::send($server, '/stays');
        self::assertTrue($server->awaitLog('stays'));

        $server->signal();

        self::assertTrue($server->awaitLog("unwound in a callback\n"), $server->log());
        self::assertTrue($server->awaitLog("the buffer below has outerinner\n"), $server->log());
        self::assertSame('', ServerProcess::readAll($client));
        self::assertTrue($server->awaitLog('DeadlockException'), $server->log());
        self::assertSame(255, $server->stop()[0]);
    }

    public function testAWaitInACallbackThatOthersPrintIntoIsAnError(): void
    {
        $program = Subprocess::run(<<<'PHP'
            run(function () {
                ob_start(function (string $text) { try { delay(0.001); } catch (Error $refused) { return $refused->getMessage(); } });
                echo 'text';
                async(function () { echo 'of another'; });
                delay(0.001);
                ob_end_flush();
            });
            PHP);

        self::assertStringStartsWith('This code cannot wait: it is called by an output buffer that other tasks print into', $program->output, $program->errors);
        self::assertSame(0, $program->exitCode);
    }

    /** Functions of PHP that print in a loop do not look at exceptions. */
    public function testAClientThatLeavesWhileAFunctionPrintsIsOneException(): void
    {
        $server = $this->serve(self::WAITS . self::stream(<<<'PHP'
            try {
                fpassthru(memory());
            } catch (Throwable $thrown) {
                $classes = [];
                for ($each = $thrown; $each !== null; $each = $each->getPrevious()) { $classes[] = $each::class; }
                fwrite(STDERR, "fpassthru() threw " . implode(" after ", $classes) . "\n");
                throw $thrown;
            }
            PHP));
        $client = self::send($server, '/stream');
        self::assertSame('H', fread($client, 1));

        fclose($client);

        self::assertTrue($server->awaitLog("fpassthru() threw Weft\\Http\\ClientDisconnectedException\n"), $server->log());
        self::assertSame('page[part]', self::bodyOf($server->get('/page')));
    }

    public function testATimeoutEndsTheWaitOfAFunctionThatPrints(): void
    {
        $server = $this->serve(self::WAITS . self::stream(<<<'PHP'
            try {
                Weft\timeout(0.01, static fn() => fpassthru(memory()));
            } catch (Throwable $thrown) {
                fwrite(STDERR, "fpassthru() threw " . $thrown::class . "\n");
                throw $thrown;
            }
            PHP));

        // It reads nothing.
        $client = self::send($server, '/stream');

        self::assertTrue($server->awaitLog("fpassthru() threw Weft\\Runtime\\TimeoutException\n"), $server->log());
        self::assertSame('page[part]', self::bodyOf($server->get('/page')));
        fclose($client);
    }

    /** @dataProvider placesThatMustEnd */
    #[DataProvider('placesThatMustEnd')]
    public function testWhatWouldStopOthersDoesNotWaitForAClient(string $declarations, string $print, string $other): void
    {
        $server = $this->serve(self::WAITS . $declarations . self::stream($print . ' fwrite(STDERR, "has printed\n"); while (true) { echo str_repeat("X", 65_536); }')
            . '$routes->get("/other", static fn() => Response::text(' . $other . '));');

        // It reads nothing.
        $client = self::send($server, '/stream');

        self::assertTrue($server->awaitLog("has printed\n"), $server->log());
        self::assertSame('works', self::bodyOf($server->get('/other')), $server->log());
        fclose($client);
    }

    public static function placesThatMustEnd(): iterable
    {
        yield 'an autoloader' => [
            'class LateBase {} spl_autoload_register(static function (string $class): void { if ($class === "Late") { echo str_repeat("X", 1 << 20); eval("class Late extends LateBase { const IT = \'works\'; }"); } });',
            'class_exists("Late");',
            'Late::IT',
        ];
        yield 'var_dump()' => [
            'class Config { public static array $texts = []; } Config::$texts = array_fill(0, 64, str_repeat("X", 16_384));',
            'var_dump(Config::$texts);',
            'json_encode(Config::$texts) === false ? json_last_error_msg() : "works"',
        ];
    }

    public function testSmallPiecesThatCannotWaitAreSentTogether(): void
    {
        $server = $this->serve(self::stream('echo str_repeat("X", 1 << 20); var_dump(range(1, 10_000));'));

        $response = ServerProcess::readAll(self::send($server, '/stream'));

        self::assertStringContainsString('[9999]=>', $response);
        self::assertLessThan(500, substr_count($response, "\r\n"), 'ends of chunks');
    }

    /** An exception may get the address of one that was caught and freed. */
    public function testTheTextOfACallbackThatThrowsArrivesAfterACaughtTimeout(): void
    {
        $server = $this->serve('final class AppError extends LogicException { public $own = 1; }' . self::stream(<<<'PHP'
            try { Weft\timeout(0.01, static function (): void { while (true) { echo str_repeat("X", 65_536); } }); } catch (Throwable $late) {}
            unset($late);
            ob_start(static fn(string $text) => throw new AppError("of a callback"));
            echo "TEXT";
            try { ob_end_flush(); } catch (AppError) {}
            echo "LATER";
            PHP));
        $client = self::send($server, '/stream');

        usleep(50_000);

        self::assertStringContainsString('TEXTLATER', substr(self::bodyOf(ServerProcess::readAll($client)), -100));
    }

    /**
     * All requests would share it.
     *
     * @dataProvider buffersOfTheApplication
     */
    #[DataProvider('buffersOfTheApplication')]
    public function testABufferThatIsOpenWhenTheServerStartsIsClosed(string $hook, string $callback): void
    {
        $program = (string) tempnam(sys_get_temp_dir(), 'weft');
        file_put_contents($program, '<?php require ' . var_export(\dirname(__DIR__, 2) . '/autoload.php', true) . <<<PHP
            ; use Weft\{App, Http\Response};
            \$open = static function (array \$addresses = []): void { ob_start($callback); echo "left open\n"; };
            \$started = static function (array \$addresses): void { fwrite(STDOUT, "\$addresses[0]\n"); };
            \$app = new App();
            \$routes = \$app->http("127.0.0.1:0");
            \$routes->get("/loud/{name}", static function (string \$name) {
                Weft\detach(static function () use (\$name): void { Weft\delay(0.001); echo "detached of \$name\n"; fwrite(STDERR, "has printed\n"); });
                echo "beside \$name";
                return Response::text(json_encode([ob_get_level(), ob_get_contents(), ob_list_handlers()]));
            });
            $hook
            PHP);
        $server = $this->keep(ServerProcess::launch([$program], $program));

        self::assertTrue($server->awaitLog('A server starts while a task has an output buffer open'), $server->log());
        foreach (['a', 'b'] as $name) {
            self::assertSame('[0,"",[]]', self::bodyOf($server->get("/loud/$name")));
        }
        Timing::until(static fn(): bool => substr_count($server->log(), 'has printed') === 2, 'both detached tasks print');
        self::assertStringContainsString('Discarded output printed by GET /loud/{name}', $server->log());
        self::assertStringNotContainsString('callback with', $server->log());
        $server->signal();

        self::assertSame("left open\ndetached of a\ndetached of b\n", $server->output());
    }

    public static function buffersOfTheApplication(): iterable
    {
        $callback = 'static function (string $text): string { preg_match("/beside|detached/", $text) === 1 && fwrite(STDERR, "callback with $text"); return $text; }';
        yield 'App::run()' => ['$app->run(static function (array $addresses) use ($open, $started): void { $started($addresses); $open(); });', ''];
        yield 'App::run(), with a callback' => ['$app->run(static function (array $addresses) use ($open, $started): void { $started($addresses); $open(); });', $callback];
        yield 'an onStart hook' => ['$app->onStart($open)->run($started);', ''];
        yield 'an onStart hook, with a callback' => ['$app->onStart($open)->run($started);', $callback];
    }

    /** The program has opened it for what it prints itself. */
    public function testABufferThatIsOpenBeforeTheLoopRunsStaysOpen(): void
    {
        $program = (string) tempnam(sys_get_temp_dir(), 'weft');
        file_put_contents($program, '<?php require ' . var_export(\dirname(__DIR__, 2) . '/autoload.php', true) . <<<'PHP'
            ; use Weft\{App, Http\Response};
            ob_start();
            $app = new App();
            $app->http("127.0.0.1:0")->get("/loud", static function () { echo "beside"; return Response::text("answer" . ob_get_level()); });
            $app->run(static function (array $addresses): void { fwrite(STDOUT, "$addresses[0]\n"); echo "of the program"; });
            fwrite(STDOUT, "kept: " . ob_get_clean());
            PHP);
        $server = $this->keep(ServerProcess::launch([$program], $program));

        self::assertSame('answer0', self::bodyOf($server->get('/loud')));
        self::assertStringNotContainsString('output buffer', $server->log());
        $server->signal();

        self::assertSame('kept: of the program', $server->output());
    }

    public function testACallbackOfABufferThatARequestHasLeftOpenMayThrow(): void
    {
        $server = $this->serve(<<<'PHP'
            $routes->get('/left', static function (): Response {
                ob_start(static fn() => throw new LogicException('on purpose'));
                echo 'SECRET';

                return Response::text('left');
            });
            $routes->get('/next', static fn() => Response::text('next'));
            PHP);

        self::assertSame('left', self::bodyOf($server->get('/left')));
        self::assertSame('next', self::bodyOf($server->get('/next')), $server->log());
        self::assertStringContainsString('The callback of an output buffer that GET /left from', $server->log());
        self::assertStringContainsString('has left open has failed: on purpose', $server->log());
    }

    /** The task has ended: what its callback calls makes the process wait. */
    public function testTheCallbackOfABufferThatATaskHasLeftOpenWorks(): void
    {
        $server = $this->serve(self::WAITS . <<<'PHP'
            $routes->get("/child", static function () {
                async(static function (): void {
                    ob_start(static function (string $text): string { usleep(1_000); fwrite(STDERR, "$text is " . shell_exec("echo done")); return ""; });
                    echo "child";
                })->await();
                return Response::text("answer");
            });
            PHP);

        for ($round = 1; $round <= 2; $round++) {
            self::assertSame('answer', self::bodyOf($server->get('/child')));
            Timing::until(static fn(): bool => substr_count($server->log(), "child is done\n") === $round, 'the callback ends');
        }
    }

    public function testATaskThatIsDestroyedInACallbackDoesNotContinue(): void
    {
        $server = $this->serve(self::stream(<<<'PHP'
            ob_start(static function (string $text): string {
                fwrite(STDERR, "waits\n");
                while (true) { try { (new Weft\Runtime\Channel(1))->receive(); } catch (Throwable) {} }
            }, 1);
            while (true) { try { echo str_repeat("X", 65_536); } catch (Throwable) {} }
            PHP), app: 'grace: 0.05');
        $client = self::send($server, '/stream');
        self::assertTrue($server->awaitLog('waits'));

        self::assertSame(255, $server->stop()[0]);
        self::assertStringNotContainsString('XX', ServerProcess::readAll($client));
    }

    /** A route `/stream` whose body is what the code prints. */
    private static function stream(string $print, int $instances = 2): string
    {
        return "\$pool = new Weft\Http\ApplicationPool(static fn() => new stdClass(), $instances);" . <<<'PHP'
            use Weft\Http\Internal\StreamedOutput;
            function memory() { $memory = fopen("php://memory", "w+"); fwrite($memory, str_repeat("X", 1 << 24)); rewind($memory); return $memory; }
            $routes->get("/stream", static fn(Request $request) => $pool->serve($request, static fn() => new Response(200, [], static function (BodyWriter $writer): void {
                StreamedOutput::copy(static function (): void {
            PHP . $print . ' }, $writer); })));';
    }

    /** @dataProvider placesThatCannotWait */
    #[DataProvider('placesThatCannotWait')]
    public function testAStreamIsWholeWhereItsOutputCannotWait(string $print, int $expected): void
    {
        $server = $this->serve(
            'final class PrintsAtItsEnd { public function __construct(private string $text) {} public function __destruct() { foreach (str_split($this->text, 65_536) as $piece) { echo $piece; } } }'
                . self::stream($print),
        );
        $clients = [self::send($server, '/stream'), self::send($server, '/stream')];

        foreach ($clients as $client) {
            $body = ServerProcess::readAll($client);
            self::assertSame($expected, substr_count($body, 'X'));
            self::assertStringContainsString('end', $body);
        }
    }

    public static function placesThatCannotWait(): iterable
    {
        $end = ' echo "end";';
        yield 'a destructor' => ['new PrintsAtItsEnd(str_repeat("X", 1 << 24));' . $end, 1 << 24];
        yield 'a Fiber of the application' => ['(new Fiber(static function (): void { for ($n = 0; $n < 256; $n++) { echo str_repeat("X", 65_536); } }))->start();' . $end, 1 << 24];
        // PHP prints it character by character.
        yield 'code that is highlighted' => ['highlight_string(str_repeat("<?php X() ?>" . str_repeat("X", 1023), 256));' . $end, 1 << 18];
    }

    public function testAStreamThatHasPrintedAllDoesNotWaitForItsClient(): void
    {
        $server = $this->serve(
            self::stream('var_dump(array_fill(0, 256, str_repeat("X", 1 << 16)));', instances: 1) . '$routes->get("/other", static fn(Request $request) => $pool->serve($request, static fn() => Response::text("works")));',
        );

        // It reads nothing.
        $client = self::send($server, '/stream');
        self::assertSame('H', fread($client, 1));

        self::assertSame('works', self::bodyOf($server->get('/other')), $server->log());
        self::assertSame(1 << 24, substr_count(ServerProcess::readAll($client), 'X'));
    }

    /**
     * The text that the callback was called with arrives, as under PHP-FPM.
     *
     * @dataProvider exitsOfStreams
     */
    #[DataProvider('exitsOfStreams')]
    public function testExitInACallbackOfAStreamKeepsItsText(string $print, string $expected): void
    {
        $server = $this->serve(self::WAITS . self::stream($print));

        foreach (['first', 'second'] as $round) {
            self::assertSame($expected, $server->curl('/stream')[1], "$round: {$server->log()}");
        }
        self::assertSame('page[part]', self::bodyOf($server->get('/page')));
        self::assertSame('', $server->log());
    }

    public static function exitsOfStreams(): iterable
    {
        yield 'at once' => ['echo "before "; ob_start(static function (string $text): string { exit; }); echo "text"; ob_end_flush(); echo "after";', 'before text'];
        yield 'after a wait' => ['echo "before "; ob_start(static function (string $text): string { delay(0.001); exit; }); echo "text"; ob_end_flush(); echo "after";', 'before text'];
        yield 'with a message' => ['echo "before "; ob_start(static function (string $text): string { exit(" message"); }); echo "text"; ob_end_flush(); echo "after";', 'before text message'];
        yield 'of one below another' => ['echo "before "; ob_start(static function (string $text): string { exit; }, 1); ob_start(); echo "text"; ob_end_flush(); echo "after";', 'before text'];
        yield 'of one above another' => ['echo "before "; ob_start(static fn(string $text): string => strtoupper($text)); echo "outer "; ob_start(static function (string $text): string { exit; }); echo "text"; ob_end_flush(); echo "after";', 'before OUTER TEXT'];
    }

    /** @return resource */
    private static function send(ServerProcess $server, string $path)
    {
        $socket = $server->connect();
        fwrite($socket, "GET $path HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");

        return $socket;
    }
}
