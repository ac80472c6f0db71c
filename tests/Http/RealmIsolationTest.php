<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Tests\Runtime\Subprocess;

/** Nothing of a request is found by what its instance, or its fiber, does next. */
final class RealmIsolationTest extends HttpTestCase
{
    /** @dataProvider failures */
    #[DataProvider('failures')]
    public function testTheOutputOfAFailedRequestReachesNoOther(string $fail, string $terminate = 'null'): void
    {
        $server = $this->serve(<<<PHP
            final class Store implements SessionHandlerInterface
            {
                public function open(string \$path, string \$name): bool { return true; }
                public function close(): bool { return true; }
                #[ReturnTypeWillChange]
                public function read(string \$id) { return ''; }
                public function write(string \$id, string \$data): bool { throw new RuntimeException('the store is down'); }
                public function destroy(string \$id): bool { return true; }
                #[ReturnTypeWillChange]
                public function gc(int \$lifetime) { return 0; }
                public function create_sid(): string { return bin2hex(random_bytes(16)); }
                public function validateId(string \$id): bool { return true; }
            }
            \$pool = new Weft\\Http\\ApplicationPool(static function () { session_set_save_handler(new Store(), false); return new stdClass(); }, 4);
            \$routes->fallback(static fn(Request \$request) => \$pool->serve(\$request, static function () {
                if (isset(\$_GET['fail'])) { $fail }
                echo 'next';
            }, $terminate));
            PHP);

        for ($n = 0; $n < 3; $n++) {
            $server->get('/?fail=1');
            self::assertSame('next', self::bodyOf($server->get('/')), $server->log());
        }
    }

    /** @return iterable<string, array{0: string, 1?: string}> */
    public static function failures(): iterable
    {
        $shutdown = 'register_shutdown_function(static function () { echo "SECRET 2"; throw new RuntimeException("at the end"); });';
        yield 'and so does a shutdown function' => ["$shutdown echo 'SECRET'; throw new LogicException('on purpose');"];
        yield 'in a shutdown function' => ["$shutdown echo 'SECRET';"];
        yield 'in a shutdown function after the response' => [$shutdown, 'static function () {}'];
        yield 'and its session cannot be saved' => ['session_start(); $_SESSION["a"] = 1; echo "SECRET"; throw new LogicException("on purpose");'];
        yield 'with buffers' => ["$shutdown ob_start(); echo 'SECRET'; ob_start(static fn() => throw new LogicException('in a buffer')); echo 'SECRET';"];
        yield 'with a buffer that is not to be removed' => ['ob_start(null, 0, 0); echo "SECRET"; throw new LogicException("on purpose");'];
    }

    public function testABufferThatATaskLeavesOpenIsNotThatOfTheNextTask(): void
    {
        $server = $this->serve(<<<'PHP'
            $routes->get('/left', static fn() => Response::text(async(static function (): string { ob_start(); echo 'SECRET'; Weft\Native\Realm::hideBuffers(true); return 'left'; })->await()));
            $routes->get('/next', static fn() => Response::json(async(static fn(): array => [ob_get_level(), ob_get_contents()])->await()));
            PHP);

        self::assertSame('left', self::bodyOf($server->get('/left')));
        self::assertSame('[0,""]', self::bodyOf($server->get('/next')));
    }

    /** @dataProvider handles */
    #[DataProvider('handles')]
    public function testAnInstanceIsInUseUntilTheTasksOfItsRequestHaveEnded(string $handle, string $terminate): void
    {
        $server = $this->serve(<<<PHP
            \$task = static fn() => async(static function (): void {
                error_log('begun');
                while (!file_exists(getenv('WEFT_TEST_GATES') . '.end')) { clearstatcache(); delay(0.001); }
                header('X-Task: ' . \$_GET['who']);
                error_log('ended as ' . \$_GET['who']);
            });
            \$pool = new Weft\\Http\\ApplicationPool(static fn() => new stdClass(), 1);
            \$routes->get('/stats', static fn() => Response::json(\$pool->stats()['in_use']));
            \$routes->fallback(static fn(Request \$request) => \$pool->serve(\$request, static function () use (\$task) { $handle; }, $terminate));
            PHP);
        $socket = $server->connect();
        \fwrite($socket, "GET /?who=ada HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        self::assertTrue($server->awaitLog('begun'), $server->log());

        self::assertSame('1', self::bodyOf($server->get('/stats')));

        $server->open('end');
        $response = ServerProcess::readAll($socket);
        self::assertTrue($server->awaitLog('ended as ada'), $server->log());
        $terminate === 'null' && self::assertSame('ada', self::field($response, 'x-task'));
    }

    /** @return iterable<string, array{string, string}> */
    public static function handles(): iterable
    {
        yield 'of the handler' => ['$task(); echo "done"', 'null'];
        yield 'of a handler that exits' => ['$task(); exit("done")', 'null'];
        yield 'of terminate' => ['echo "done"', 'static function () use ($task) { $task(); }'];
    }

    public function testWorkWithoutARequestEndsWithItsTasks(): void
    {
        $seen = self::program(<<<'PHP'
            $ended = [];
            $task = static function (string $name) use (&$ended): void { async(static function () use ($name, &$ended): void { delay(0.005); $ended[] = $name; }); };
            $pool = new ApplicationPool(static fn() => new stdClass(), 1);
            $pool->with(static fn() => $task('with'));
            $seen[] = $ended;
            $borrowed = $pool->borrow();
            $borrowed->run(static fn() => $task('run'));
            $borrowed->release();
            $seen[] = $ended;
            $seen[] = $pool->stats()['booted'];
            PHP);

        self::assertSame([['with'], ['with', 'run'], 1], $seen);
    }

    public function testAnInstanceIsReplacedWhileTasksThatItHasDetachedRun(): void
    {
        $seen = self::program(<<<'PHP'
            // A task of the boot belongs to the application.
            $boot = static function () { detach(static function (): void { while (true) { all([static fn() => delay(0.001)]); } }); return new stdClass(); };
            $pool = new ApplicationPool($boot, 1, logger: new Psr\Log\NullLogger());
            $pool->with(static fn() => delay(0.005));
            $pool->with(static fn() => detach(static fn() => delay(60.0)));
            $pool->with(static fn() => detach(static fn() => null)->await());
            $pool->with(static fn() => null);
            $seen[] = $pool->stats()['booted'];
            $seen[] = $pool->stats()['failed'];
            PHP);

        self::assertSame([2, 1], $seen);
    }

    public function testAFatalErrorInAShutdownFunctionEndsTheProcess(): void
    {
        $server = $this->serve(<<<'PHP'
            $routes->fallback(new Weft\Http\RealmHandler(static fn() => static function () {
                isset($_GET['fail']) && register_shutdown_function(static fn() => eval('interface A { } class B extends A { }'));
                echo 'answer';
            }, 1));
            PHP);

        self::assertStatus(500, $server->get('/?fail=1'));

        self::assertSame(255, $server->end()[0]);
    }

    public function testASessionOfAStreamedBodyIsSavedAndIsNotThatOfTheNextRequest(): void
    {
        $server = $this->serve(<<<'PHP'
            $GLOBALS['folder'] = sys_get_temp_dir() . '/weft-sessions-' . getmypid();
            mkdir($GLOBALS['folder']);
            register_shutdown_function(static fn() => [array_map(unlink(...), glob($GLOBALS['folder'] . '/*')), rmdir($GLOBALS['folder'])]);
            $routes->fallback(new Weft\Http\RealmHandler(static function () {
                ini_set('session.save_path', $GLOBALS['folder']);
                ini_set('session.use_strict_mode', '0');
                return static function () {
                    if (isset($_GET['stream'])) {
                        return new Response(200, [], static function (BodyWriter $writer): void {
                            session_start();
                            $_SESSION['user'] = 'ada';
                            register_shutdown_function(static fn() => error_log('end of ' . $_GET['stream']));
                            $writer->write('streamed');
                        });
                    }
                    echo json_encode([session_status(), session_id(), $_SESSION ?? null]);
                    session_start();
                    echo json_encode([session_id(), $_SESSION]);
                };
            }, 1));
            PHP);
        [$ada, $bob] = [\str_repeat('a', 26), \str_repeat('b', 26)];

        self::assertSame('streamed', $server->curl('/?stream=1', '-b', "PHPSESSID=$ada")[1]);
        self::assertSame("[1,\"\",null][\"$bob\",[]]", self::bodyOf($server->get('/', '-b', "PHPSESSID=$bob")));
        self::assertTrue($server->awaitLog('end of 1'));
        self::assertSame("[1,\"\",null][\"$ada\",{\"user\":\"ada\"}]", self::bodyOf($server->get('/', '-b', "PHPSESSID=$ada")));
        $server->stop();
    }

    public function testWorkWithoutARequestSeesNoneBeforeIt(): void
    {
        $server = $this->serve(<<<'PHP'
            $GLOBALS['folder'] = sys_get_temp_dir() . '/weft-sessions-' . getmypid();
            mkdir($GLOBALS['folder']);
            register_shutdown_function(static fn() => [array_map(unlink(...), glob($GLOBALS['folder'] . '/*')), rmdir($GLOBALS['folder'])]);
            $pool = new Weft\Http\ApplicationPool(static function () { $_SERVER['BOOTED'] = '1'; register_shutdown_function(static fn() => error_log('of the boot')); return new stdClass(); }, 1);
            $see = static fn(): array => [
                $_GET, $_POST, $_COOKIE, $_REQUEST, $_SESSION ?? null, $_SERVER['HTTP_AUTHORIZATION'] ?? null, $_SERVER['BOOTED'] ?? null,
                file_get_contents('php://input'), filter_input(INPUT_GET, 'card'), headers_list(), ini_get('precision'), date_default_timezone_get(), strtok(','),
                session_id(), http_response_code(),
            ];
            $routes->get('/job', static fn() => Response::json($pool->with(static function () use ($see): array {
                register_shutdown_function(static fn() => error_log('end of the job'));
                $seen = $see();
                header('X-Job: 1');
                session_start();
                $_SESSION['job'] = 1;
                ini_set('precision', '4');
                return $seen;
            })));
            $routes->fallback(static fn(Request $request) => $pool->serve($request, static function () use ($see) {
                session_start();
                $_SESSION['user'] = $_COOKIE['user'];
                ini_set('precision', '3');
                date_default_timezone_set('Asia/Tokyo');
                strtok('secret,text', ',');
                echo 'hello';
            }));
            PHP);
        $nothing = [[], [], [], [], null, null, '1', '', null, [], \ini_get('precision'), 'UTC', false, '', false];

        self::assertSame($nothing, \json_decode(self::bodyOf($server->get('/job')), true));
        self::assertSame('hello', self::bodyOf($server->get('/?card=4711', '-b', 'user=ada', '-H', 'Authorization: Bearer secret', '-d', 'password=secret')));
        for ($n = 0; $n < 2; $n++) {
            self::assertSame($nothing, \json_decode(self::bodyOf($server->get('/job')), true));
        }
        self::assertTrue($server->awaitLog('end of the job'));
        self::assertSame('', self::field($server->get('/', '-b', 'user=bob'), 'x-job'));
        self::assertStringNotContainsString('of the boot', $server->log());
        $server->stop();
    }

    public function testUrlsAreRewrittenInEveryRequestThatAsksForIt(): void
    {
        $server = $this->serve(<<<'PHP'
            $pool = new Weft\Http\ApplicationPool(static fn() => new stdClass(), 3);
            $form = '<form action="/x"></form>';
            $routes->get('/plain', static fn(Request $request) => $pool->serve($request, static function () use ($form) { echo $form; }));
            $routes->get('/add/{value}', static fn(Request $request, string $value) => $pool->serve($request, static function () use ($form, $value) {
                output_add_rewrite_var('v', $value);
                echo $form;
                if ($value === 'waits') { fwrite(STDERR, "waits\n"); gate('waits'); }
                echo $form;
            }));
            $routes->get('/reset', static fn(Request $request) => $pool->serve($request, static function () use ($form) {
                output_add_rewrite_var('v', 'reset');
                output_reset_rewrite_vars();
                echo $form;
            }));
            $routes->get('/discards', static fn(Request $request) => $pool->serve($request, static function () use ($form) {
                output_add_rewrite_var('v', 'lost');
                while (ob_get_level() > 0) { ob_end_clean(); }
                output_add_rewrite_var('w', 'lost');
                echo $form;
            }));
            PHP);
        $plain = '<form action="/x"></form>';
        $rewritten = static fn(string $value): string => '<form action="/x"><input type="hidden" name="v" value="' . $value . '" /></form>';
        $get = static fn(string $path): string => self::bodyOf($server->get($path));
        $waiting = $server->connect();
        fwrite($waiting, "GET /add/waits HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        self::assertTrue($server->awaitLog('waits'));

        // As under PHP-FPM.
        for ($round = 1; $round <= 4; $round++) {
            self::assertSame($rewritten("a$round") . $rewritten("a$round"), $get("/add/a$round"));
            self::assertSame($plain, $get('/plain'));
            self::assertSame($plain, $get('/reset'));
            self::assertSame($plain, $get('/discards'));
        }
        $server->open('waits');
        self::assertSame($rewritten('waits') . $rewritten('waits'), self::bodyOf(ServerProcess::readAll($waiting)));
        self::assertSame($rewritten('last') . $rewritten('last'), $get('/add/last'));
    }

    public function testTheIdOfASessionIsInTheUrlsOfEveryRequestThatHasOne(): void
    {
        $server = $this->serve(<<<'PHP'
            $GLOBALS['folder'] = sys_get_temp_dir() . '/weft-sessions-' . getmypid();
            mkdir($GLOBALS['folder']);
            register_shutdown_function(static fn() => [array_map(unlink(...), glob($GLOBALS['folder'] . '/*')), rmdir($GLOBALS['folder'])]);
            $pool = new Weft\Http\ApplicationPool(static fn() => new stdClass(), 1);
            $routes->get('/plain', static fn(Request $request) => $pool->serve($request, static function () { echo '<form action="/x"></form>'; }));
            $routes->get('/', static fn(Request $request) => $pool->serve($request, static function () {
                @session_start(['save_path' => $GLOBALS['folder'], 'use_trans_sid' => '1', 'use_only_cookies' => '0', 'use_cookies' => '0']);
                echo session_id(), '<form action="/x"></form>';
            }));
            PHP);

        $ids = [];
        for ($round = 1; $round <= 3; $round++) {
            self::assertSame(1, preg_match('~^(\w+)<form action="/x"><input type="hidden" name="PHPSESSID" value="\1" /></form>$~', $body = self::bodyOf($server->get('/')), $found), $body . $server->log());
            self::assertSame('<form action="/x"></form>', self::bodyOf($server->get('/plain')));
            $ids[] = $found[1];
        }
        self::assertCount(3, array_unique($ids));
    }

    public function testAHandleOfTheBodyIsClosedWithItsRequest(): void
    {
        $server = $this->serve(<<<'PHP'
            $routes->fallback(new Weft\Http\RealmHandler(static function () {
                $kept = null;
                return static function () use (&$kept) {
                    $before = is_resource($kept) ? stream_get_contents($kept, -1, 0) : 'closed';
                    $kept = fopen('php://input', 'r');
                    echo $before, ' ', stream_get_contents($kept);
                };
            }, 1));
            PHP);

        self::assertSame('closed one', self::bodyOf($server->get('/', '-H', 'Content-Type: text/plain', '-d', 'one')));
        self::assertSame('closed two', self::bodyOf($server->get('/', '-H', 'Content-Type: text/plain', '-d', 'two')));
    }

    public function testCookiesHaveTheNamesThatPhpGivesThem(): void
    {
        $server = $this->serve('$routes->fallback(new Weft\Http\RealmHandler(static fn() => static function () { echo json_encode($_COOKIE); }, 1));');
        $cookies = 'a[b]=1; a[c]=2; my.cookie=x; plus=1+1; twice=first; twice=second; encoded=%3D%20; empty=; none; __Host-a=1; quoted="q"; l[]=1; l[]=2; my_cookie=y; =z';

        self::assertSame(
            ['a' => ['b' => '1', 'c' => '2'], 'my_cookie' => 'x', 'plus' => '1+1', 'twice' => 'first', 'encoded' => '= ', 'empty' => '', 'none' => '', '__Host-a' => '1', 'quoted' => '"q"', 'l' => ['1', '2']],
            \json_decode(self::bodyOf($server->get('/', '-b', $cookies)), true),
        );
    }

    public function testAFieldInWhichNoFileWasChosenIsAnErrorOfItsFile(): void
    {
        $server = $this->serve('$routes->fallback(new Weft\Http\RealmHandler(static fn() => static function () { echo json_encode($_FILES); }, 1));');
        $part = static fn(string $name, string $file, string $contents): string => "--b\r\nContent-Disposition: form-data; name=\"$name\"; filename=\"$file\"\r\nContent-Type: text/plain\r\n\r\n$contents\r\n";
        $body = $part('one', '', '') . $part('many[]', 'a.txt', 'text') . $part('many[]', '', '') . '--b--';

        $files = \json_decode(self::bodyOf($server->get('/', '-H', 'Content-Type: multipart/form-data; boundary=b', '--data-binary', $body)), true);

        self::assertSame(['name' => '', 'full_path' => '', 'type' => '', 'tmp_name' => '', 'error' => \UPLOAD_ERR_NO_FILE, 'size' => 0], $files['one']);
        self::assertSame([['a.txt', ''], [\UPLOAD_ERR_OK, \UPLOAD_ERR_NO_FILE], [4, 0]], [$files['many']['name'], $files['many']['error'], $files['many']['size']]);
    }

    /** @return list<mixed> */
    private static function program(string $code): array
    {
        $ended = Subprocess::run("use Weft\\Http\\ApplicationPool;\n\$seen = [];\nrun(static function () use (&\$seen) {\n$code\n});\necho json_encode(\$seen);");
        self::assertSame([0, ''], [$ended->exitCode, $ended->errors], $ended->output);

        return \json_decode($ended->output, true, flags: \JSON_THROW_ON_ERROR);
    }
}
