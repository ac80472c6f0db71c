<?php

declare(strict_types=1);

namespace Weft\Tests\Runtime;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Native;
use Weft\Runtime\Realm;

use function Weft\all;
use function Weft\async;
use function Weft\delay;
use function Weft\run;

/** Each test runs in a process of its own: realms take hold of state that PHPUnit uses as well. */
final class RealmTest extends TestCase
{
    /**
     * @param string $body of a function that gets the number of the realm, 1 or 2, runs in both at once, and returns what it has seen
     * @param list<string> $isolated
     *
     * @return array{mixed, mixed, mixed} of both realms, and of the same observation outside after them
     */
    private static function inTwoRealms(string $body, string $observation = 'null', array $isolated = []): array
    {
        $isolate = $isolated === [] ? '' : 'Weft\Runtime\Realm::isolate(...' . \var_export($isolated, true) . ');';
        $program = <<<PHP
            $isolate
            \$work = static function (int \$n, Weft\\Native\\Realm \$native) { $body };
            \$seen = Weft\\run(static fn () => Weft\\all(array_map(
                static fn (int \$n) => static fn () => (new Weft\\Runtime\\Realm())->run(static fn (\$native) => \$work(\$n, \$native)),
                [1, 2],
            )));
            \$seen[] = $observation;
            echo json_encode(\$seen);
            PHP;

        $ended = Subprocess::run($program, extensions: ['mbstring']);
        self::assertSame([0, ''], [$ended->exitCode, $ended->errors], $ended->output);

        return \json_decode($ended->output, true, flags: \JSON_THROW_ON_ERROR);
    }

    /** @dataProvider state */
    #[DataProvider('state')]
    public function testEachRealmHasItsOwn(string $set, string $get, mixed $first, mixed $second, mixed $outside): void
    {
        $body = "$set; \$seen = []; for (\$i = 0; \$i < 3; \$i++) { Weft\\delay(0.001); \$seen[] = $get; } return \$seen;";

        [$one, $two, $base] = self::inTwoRealms($body, $get, ['Weft\Tests\Runtime\Fixtures\Registry::current']);

        self::assertSame([$first, $first, $first], $one);
        self::assertSame([$second, $second, $second], $two);
        self::assertSame($outside, $base);
    }

    public static function state(): iterable
    {
        yield '$_GET' => ['$_GET["n"] = $n', '$_GET["n"] ?? null', 1, 2, null];
        yield '$_SERVER' => ['$_SERVER["HTTP_N"] = $n', '$_SERVER["HTTP_N"] ?? null', 1, 2, null];
        yield '$_SESSION' => ['$_SESSION = ["n" => $n]', '$_SESSION ?? null', ['n' => 1], ['n' => 2], null];
        yield 'header()' => ['header("X-N: $n")', 'headers_list()', ['X-N: 1'], ['X-N: 2'], []];
        yield 'setcookie()' => ['setcookie("n", (string) $n)', 'headers_list()', ['Set-Cookie: n=1'], ['Set-Cookie: n=2'], []];
        yield 'http_response_code()' => ['http_response_code(400 + $n)', 'http_response_code()', 401, 402, false];
        yield 'ini_set()' => ['ini_set("precision", (string) (10 + $n))', 'sqrt(2) . ""', '1.4142135624', '1.41421356237', '1.4142135623731'];
        yield 'ini_set() of open_basedir, which PHP only narrows' => ['ini_set("open_basedir", $n === 1 ? "/tmp:/etc:' . \dirname(__DIR__, 2) . '" : "/var:' . \dirname(__DIR__, 2) . '")', '[(bool) @scandir("/etc"), (bool) @scandir("/var")]', [true, false], [false, true], [true, true]];
        yield 'ini_set() of a session' => ['ini_set("session.cookie_path", "/$n")', 'session_get_cookie_params()["path"]', '/1', '/2', '/'];
        yield 'error_reporting()' => ['error_reporting($n)', 'error_reporting()', 1, 2, \E_ALL];
        yield 'the time zone' => ['date_default_timezone_set($n === 1 ? "Asia/Tokyo" : "Europe/Vienna")', 'date_default_timezone_get()', 'Asia/Tokyo', 'Europe/Vienna', 'UTC'];
        yield 'the locale' => ['setlocale(LC_ALL, $n === 1 ? "C.UTF-8" : "C")', 'setlocale(LC_CTYPE, 0)', 'C.UTF-8', 'C', 'C.UTF-8'];
        yield 'the error handler' => ['set_error_handler(static function () use ($n) { $GLOBALS["handled"] = $n; return true; })', '(static function () { $GLOBALS["handled"] = 0; @trigger_error("x"); return $GLOBALS["handled"]; })()', 1, 2, 0];
        yield 'the exception handler' => ['set_exception_handler(static fn () => $n)', '(static function () { $handler = set_exception_handler(null); set_exception_handler($handler); return $handler === null ? null : $handler(); })()', 1, 2, null];
        yield 'filter_input()' => ['$native->begin([], ["n" => $n], [], [], [], [], "")', 'filter_input(INPUT_GET, "n")', '1', '2', null];
        yield 'mb_internal_encoding()' => ['mb_internal_encoding($n === 1 ? "ISO-8859-1" : "EUC-JP")', 'mb_internal_encoding()', 'ISO-8859-1', 'EUC-JP', 'UTF-8'];
        yield 'mb_substitute_character()' => ['mb_substitute_character(0x30 + $n)', 'mb_substitute_character()', 0x31, 0x32, 0x3f];
        yield 'a static property' => ['Weft\Tests\Runtime\Fixtures\Registry::$current .= $n', 'Weft\Tests\Runtime\Fixtures\Registry::$current', 'declared1', 'declared2', 'declared'];
        yield 'an inherited static property' => ['Weft\Tests\Runtime\Fixtures\ChildRegistry::$current = "child $n"', 'Weft\Tests\Runtime\Fixtures\Registry::$current', 'child 1', 'child 2', 'declared'];
    }

    /** While one realm uses more memory than another one may, PHP refuses to lower the limit. */
    public function testAMemoryLimitThatIsBelowWhatOthersUseIsNotLost(): void
    {
        $ended = Subprocess::run(<<<'PHP'
            ini_set('memory_limit', '64M');
            $seen = Weft\run(static fn () => Weft\all([
                static fn () => (new Weft\Runtime\Realm())->run(static function () {
                    ini_set('memory_limit', '-1');
                    $large = str_repeat('x', 100 << 20);
                    Weft\delay(0.02);
                    unset($large);

                    return ini_get('memory_limit');
                }),
                static fn () => (new Weft\Runtime\Realm())->run(static function () {
                    $seen = [ini_get('memory_limit')];
                    ini_set('memory_limit', '512M');
                    Weft\delay(0.001);

                    return [...$seen, ini_get('memory_limit')];
                }),
                static function () {
                    Weft\delay(0.005);

                    return ini_get('memory_limit');
                },
            ]));
            echo json_encode([...$seen, ini_get('memory_limit')]), "\n";
            str_repeat('x', 100 << 20);
            PHP);

        self::assertSame('["-1",["64M","512M"],"64M","64M"]', \strstr($ended->output, "\n", true), $ended->errors);
        self::assertStringContainsString('Allowed memory size of 67108864 bytes exhausted', $ended->output . $ended->errors);
    }

    public function testTheBodyIsReadFromPhpInput(): void
    {
        $seen = self::inTwoRealms(<<<'PHP'
            $native->begin(['REQUEST_METHOD' => 'PUT'], ['q' => $n], [], [], [], [], "body $n");
            Weft\delay(0.001);
            $first = [file_get_contents('php://input'), $_GET, $_SERVER, $_POST];
            $native->begin([], [], ['p' => $n], [], [], [], str_repeat((string) $n, 3));
            Weft\delay(0.001);

            return [$first, [file_get_contents('php://input'), $_GET, $_POST]];
            PHP);

        foreach ([1, 2] as $n) {
            self::assertSame([["body $n", ['q' => $n], ['REQUEST_METHOD' => 'PUT'], []], [\str_repeat((string) $n, 3), [], ['p' => $n]]], $seen[$n - 1]);
        }
    }

    public function testSessionsAreSeparate(): void
    {
        $directory = \sys_get_temp_dir() . '/weft-sessions-' . \bin2hex(\random_bytes(4));
        \mkdir($directory);
        try {
            $seen = self::inTwoRealms(<<<PHP
                ini_set('session.use_strict_mode', '0');
                ini_set('session.save_path', '$directory');
                session_id("session\$n");
                session_start();
                \$_SESSION['user'] = \$n;
                Weft\\delay(0.001);
                \$first = [session_id(), \$_SESSION];
                session_write_close();
                Weft\\delay(0.001);
                \$native->begin([], [], [], ['PHPSESSID' => "session\$n"], [], [], '');
                session_start();
                Weft\\delay(0.001);

                return [\$first, session_id(), \$_SESSION, headers_list() !== []];
                PHP, 'session_id()');
        } finally {
            \exec('rm -rf ' . \escapeshellarg($directory));
        }

        foreach ([1, 2] as $n) {
            self::assertSame([["session$n", ['user' => $n]], "session$n", ['user' => $n], true], $seen[$n - 1]);
        }
        self::assertSame('', $seen[2]);
    }

    public function testEqualSettingsOfSessionsAreThoseOfEachRealm(): void
    {
        [$one, $two] = self::inTwoRealms(<<<'PHP'
            // Equal, but a string of its own: ext/session points into it.
            ini_set('session.save_path', '/tmp/' . str_repeat('a', 300));
            $unlike = [];
            for ($i = 0; $i < 5; $i++) {
                Weft\delay(0.001);
                // Takes the places of strings of this length that were freed.
                $kept[] = array_map(static fn () => str_repeat('x', 305), range(1, 100));
                session_save_path() === '/tmp/' . str_repeat('a', 300) || $unlike[] = session_save_path();
            }

            return $unlike;
            PHP);

        self::assertSame([[], []], [$one, $two]);
    }

    public function testErrorsAreReportedAfterARealmWhereNoSettingSaysWhich(): void
    {
        $program = Subprocess::run('run(static function (): void { (new Weft\Runtime\Realm())->run(static fn() => error_reporting(E_ERROR)); echo error_reporting() & E_WARNING; trigger_error("after", E_USER_WARNING); });');

        self::assertSame((string) \E_WARNING, $program->output, $program->errors);
        self::assertStringContainsString('Warning: after', $program->errors);
    }

    public function testStrtokGoesOnInTheTextOfItsRealm(): void
    {
        $body = '$seen = [strtok("a$n,b$n,c$n", ",")]; for ($i = 0; $i < 3; $i++) { Weft\delay(0.001); $seen[] = strtok(","); } return $seen;';

        // PHP 8.3 and later warn where no text was begun.
        self::assertSame([['a1', 'b1', 'c1', false], ['a2', 'b2', 'c2', false], false], self::inTwoRealms($body, '@strtok(",")'));
    }

    public function testShutdownFunctionsRunInTheirRealmAndThoseOfTheProcessAtItsEnd(): void
    {
        $ended = Subprocess::run(<<<'PHP'
            register_shutdown_function(static fn () => print('process '));
            Weft\run(static function () {
                foreach ([1, 2] as $n) {
                    Weft\async(static fn () => (new Weft\Runtime\Realm())->run(static function ($native) use ($n) {
                        $_GET['n'] = $n;
                        register_shutdown_function(static fn () => print("realm {$_GET['n']} "));
                        Weft\delay(0.001);
                        $native->runShutdownFunctions();
                    }))->await();
                }
            });
            PHP);

        self::assertSame('realm 1 realm 2 process ', $ended->output . $ended->errors);
    }

    public function testTasksAndFibersMadeInARealmBelongToIt(): void
    {
        [$one, $two] = self::inTwoRealms(<<<'PHP'
            $_GET['n'] = $n;
            $task = Weft\async(static function () { Weft\delay(0.002); return $_GET['n']; });
            $fiber = new Fiber(static function () { Fiber::suspend($_GET['n']); return $_GET['n']; });
            $started = $fiber->start();
            Weft\delay(0.001);
            $fiber->resume();

            return [$task->await(), $started, $fiber->getReturn(), Weft\Native\Realm::current() === $native];
            PHP);

        self::assertSame([1, 1, 1, true], $one);
        self::assertSame([2, 2, 2, true], $two);
    }

    /** @dataProvider dispatches */
    #[DataProvider('dispatches')]
    public function testHandlersOfSignalsRunOutsideOfRealms(string $prepare, string $raise): void
    {
        $ended = Subprocess::run(<<<PHP
            use Weft\\Native\\Realm;
            $prepare
            ini_set('precision', '10');
            pcntl_signal(SIGUSR1, static function (): void {
                echo Realm::current() === null ? 'outside' : 'inside', ' ', \$_GET['n'] ?? 'none', ' ', ini_get('precision'), ' ', error_reporting(), ', ';
                ini_set('precision', '11');
                @header('X: handler');
            });
            run(static fn() => (new Weft\\Runtime\\Realm())->run(static function (): void {
                \$_GET['n'] = 1;
                ini_set('precision', '5');
                error_reporting(E_ERROR);
                $raise
                echo Realm::current() === null ? 'outside' : 'inside', " {\$_GET['n']} ", ini_get('precision'), ' ', error_reporting(), ' ', json_encode(headers_list());
            }));
            echo ' ', ini_get('precision');
            PHP);

        self::assertSame(['outside none 10 ' . \E_ALL . ', inside 1 5 1 [] 11', '', 0], [$ended->output, $ended->errors, $ended->exitCode]);
    }

    /** @return iterable<string, array{string, string}> */
    public static function dispatches(): iterable
    {
        yield 'between two instructions' => ['pcntl_async_signals(true);', 'posix_kill(posix_getpid(), SIGUSR1); for ($i = 0; $i < 100; ++$i) { sqrt($i); }'];
        yield 'where the code asks for them' => ['', 'posix_kill(posix_getpid(), SIGUSR1); pcntl_signal_dispatch();'];
        yield 'by the event loop' => ['pcntl_async_signals(true);', 'exec("(sleep 0.05; kill -USR1 " . getmypid() . ") > /dev/null 2>&1 &"); delay(0.3);'];
    }

    public function testExitInAHandlerOfASignalEndsTheProcessAndNotTheRequestThatItInterrupts(): void
    {
        $ended = Subprocess::run(<<<'PHP'
            register_shutdown_function(static fn() => print('process ' . ($_GET['n'] ?? 'none')));
            pcntl_async_signals(true);
            pcntl_signal(SIGUSR1, static fn() => exit(3));
            run(static fn() => (new Weft\Runtime\Realm())->run(static function (): void {
                $_GET['n'] = 1;
                posix_kill(posix_getpid(), SIGUSR1);
                for ($i = 0; $i < 100; ++$i) { sqrt($i); }
                echo 'went on ';
            }));
            PHP);

        self::assertSame(['process none', '', 3], [$ended->output, $ended->errors, $ended->exitCode]);
    }

    public function testTheMainProgramIsOutsideOfTheRealmOfAFiberThatItResumes(): void
    {
        $ended = Subprocess::run(<<<'PHP'
            register_shutdown_function(static fn() => print(' process'));
            run(static fn() => (new Weft\Runtime\Realm())->run(static function (): void {
                global $fiber;
                $_GET['n'] = 1;
                register_shutdown_function(static fn() => print(' realm'));
                $fiber = new Fiber(static function (): void {
                    Fiber::suspend();
                    echo $_GET['n'];
                    Fiber::suspend();
                });
                $fiber->start();
            }));
            $fiber->resume();
            echo ' ', $_GET['n'] ?? 'none';
            PHP);

        self::assertSame(['1 none process', '', 0], [$ended->output, $ended->errors, $ended->exitCode]);
    }

    /** The event loop frees the result of a task, whose destructor reports an error, while the state of a realm is in place. */
    public function testErrorsInTheEventLoopAreReportedToTheProcess(): void
    {
        $ended = Subprocess::run(<<<'PHP'
            final class Reports { public function __destruct() { trigger_error('freed'); } }
            set_error_handler(static fn() => print('process'));
            run(static function (): void {
                $first = new Channel(1);
                $second = new Channel(1);
                async(static function () use ($first): Reports { $first->receive(); return new Reports(); });
                async(static fn() => (new Weft\Runtime\Realm())->run(static function () use ($second): void {
                    set_error_handler(static fn() => print('realm'));
                    $second->receive();
                    delay(0.001);
                }));
                delay(0.001);
                $first->send(1);
                $second->send(1);
            });
            PHP);

        self::assertSame(['process', '', 0], [$ended->output, $ended->errors, $ended->exitCode]);
    }

    public function testAPooledFiberLeavesTheRealmWithItsTask(): void
    {
        $seen = run(static function (): array {
            $realm = new Realm();
            $realm->run(static fn(): mixed => async(static fn(): ?Native\Realm => Native\Realm::current())->await());

            return all(\array_fill(0, 5, static fn(): ?Native\Realm => Native\Realm::current()));
        });

        self::assertSame([null, null, null, null, null], $seen);
    }

    public function testARealmServesOneTaskAtATime(): void
    {
        $this->expectException(\Error::class);
        $this->expectExceptionMessageMatches('/The realm is held by task #\d+/');

        run(static function (): void {
            $realm = new Realm();
            async(static fn(): mixed => $realm->run(static fn(): mixed => delay(60.0)));
            delay(0.0);
            $realm->run(static fn(): null => null);
        });
    }

    public function testARealmInARealmIsRefused(): void
    {
        $this->expectException(\Error::class);
        $this->expectExceptionMessage('This task is in a realm already: it must leave it before it enters another');

        run(static fn(): mixed => (new Realm())->run(static fn(): mixed => (new Realm())->run(static fn(): null => null)));
    }

    public function testOutsideOfATaskItIsRefused(): void
    {
        $this->expectException(\Error::class);
        $this->expectExceptionMessage('A realm is entered by a task: call it within Weft\run()');

        (new Realm())->run(static fn(): null => null);
    }

    /** @dataProvider unknown */
    #[DataProvider('unknown')]
    public function testAnUnknownStaticPropertyIsNamed(string $name, string $message): void
    {
        $ended = Subprocess::run('try { Weft\Runtime\Realm::isolate(' . \var_export($name, true) . '); } catch (ValueError $e) { echo $e->getMessage(); }');

        self::assertSame($message, $ended->output . $ended->errors);
    }

    public static function unknown(): iterable
    {
        yield 'no property' => ['Registry', '"Registry" names no static property: it must be Class::property'];
        yield 'no class' => ['Nowhere::x', 'The class of the static property Nowhere::x does not exist'];
        yield 'not static' => ['Exception::message', 'The class Exception has no static property $message'];
        yield 'unknown' => ['Weft\Tests\Runtime\Fixtures\Registry::$other', 'The class Weft\Tests\Runtime\Fixtures\Registry has no static property $other'];
    }

    /** @dataProvider endings */
    #[DataProvider('endings')]
    public function testTheProcessEndsCleanlyWhateverHappensInARealm(string $code, string $expected, int $exit): void
    {
        $program = <<<PHP
            register_shutdown_function(static fn () => print(' process ' . (\$_GET['n'] ?? 'base')));
            Weft\\run(static function () {
                for (\$n = 0; \$n < 3; \$n++) {
                    Weft\\async(static fn () => (new Weft\\Runtime\\Realm())->run(static function () use (\$n) {
                        \$_GET['n'] = \$n;
                        header("X: \$n");
                        ini_set('precision', '5');
                        set_error_handler(static fn () => true);
                        try {
                            Weft\\delay(\$n === 2 ? 0.001 : 60.0);
                            $code;
                        } finally {
                            echo 'unwound ', \$_GET['n'], ' ';
                        }
                    }));
                }
                Weft\\delay(60.0);
            });
            PHP;

        $ended = Subprocess::run($program);

        $output = $ended->output . $ended->errors;
        self::assertStringContainsString($expected, $output);
        self::assertStringContainsString(' process base', $output);
        self::assertSame([$exit, null], [$ended->exitCode, $ended->signal], $output);
    }

    public static function endings(): iterable
    {
        yield 'exit' => ['exit(3)', 'exit() was called in a realm', 255];
        yield 'an exception' => ['throw new RuntimeException("on purpose")', 'on purpose', 255];
        // Counted from the last wait, in which other realms have run.
        yield 'a time limit' => ['set_time_limit(1); Weft\\delay(0.01); while (true) { sqrt(2.0); }', 'Maximum execution time of 1 second exceeded', 255];
        yield 'a fatal error' => ['ini_set("memory_limit", "20M"); str_repeat("x", 50_000_000)', 'Allowed memory size', 255];
    }

    public function testARealmThatIsNoLongerUsedIsFreedWithWhatItHolds(): void
    {
        $ended = Subprocess::run(<<<'PHP'
            final class Held { public function __destruct() { echo 'freed '; } }
            Weft\run(static function () {
                $realm = new Weft\Runtime\Realm();
                $realm->run(static function () { $_SESSION = ['held' => new Held()]; });
                $realm = null;
                gc_collect_cycles();
                echo 'after ';
            });
            PHP);

        self::assertSame('freed after ', $ended->output . $ended->errors);
    }
}
