<?php

declare(strict_types=1);

namespace Weft\Tests\Runtime;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

/** Code of an application that runs while the state of its realm is exchanged or freed, and what it has kept of it. */
final class RealmMemoryTest extends TestCase
{
    /** Freed memory is overwritten, so that who reads it fails. */
    private const STRICT = ['env', 'USE_ZEND_ALLOC=0', 'MALLOC_PERTURB_=165'];

    private const SESSIONS = <<<'PHP'
        final class StartsASession
        {
            public function __destruct()
            {
                echo 'destructed, ';
                session_id('second');
                session_start();
                $_SESSION['number'] = 1;
            }
        }
        final class Sessions implements SessionHandlerInterface
        {
            public function open($path, $name): bool { return true; }
            public function close(): bool { echo 'close, '; return true; }
            public function read($id): string { return ''; }
            public function destroy($id): bool { return true; }
            public function gc($lifetime): int { return 0; }
            public function create_sid(): string { return 'x'; }
            public function validateId($id): bool { return true; }
            public function write($id, $data): bool { return true; }
        }
        PHP;

    private string $sessions;

    protected function setUp(): void
    {
        $this->sessions = \sys_get_temp_dir() . '/weft-sessions-' . \bin2hex(\random_bytes(6));
        \mkdir($this->sessions);
    }

    protected function tearDown(): void
    {
        \array_map(\unlink(...), \glob("$this->sessions/*") ?: []);
        \rmdir($this->sessions);
    }

    /** @dataProvider programs */
    #[DataProvider('programs')]
    public function testNothingReadsMemoryThatWasFreed(string $output, string $code, string $classes = ''): void
    {
        $begin = static fn(string $variable, string $body): string => "\${$variable}->begin([], ['x' => '1'], [], [], [], [], \"$body\");";
        $code = (string) \preg_replace_callback('/BEGIN\((\w+), (.*?)\);/', static fn(array $match): string => $begin($match[1], $match[2]), $code);
        $program = Subprocess::run(
            "use Weft\\Native\\Realm; $classes \$realm = new Realm(); run(static function () use (\$realm): void { \$realm->enter(); $code Realm::leave(); });",
            options: ['session.use_cookies=0', 'session.cache_limiter=', "session.save_path=$this->sessions"],
            under: self::STRICT,
        );

        self::assertSame(['', $output], [$program->errors, $program->output], "exit code $program->exitCode");
        self::assertSame(0, $program->exitCode);
    }

    /** @return iterable<string, array{0: string, 1: string, 2?: string}> what is printed, code in a realm, and classes */
    public static function programs(): iterable
    {
        yield 'filter_input() and its like with constant arrays' => ['[] 1 1', <<<'PHP'
            BEGIN(realm, );
            echo json_encode(filter_input_array(INPUT_GET, [])), ' ', filter_input(INPUT_GET, 'x', FILTER_DEFAULT, []), ' ';
            echo filter_input(INPUT_GET, 'x', FILTER_VALIDATE_INT, ['flags' => 0]);
            PHP];

        yield 'a shutdown function whose destructor registers others' => ['first then 100', <<<'PHP'
            BEGIN(realm, );
            register_shutdown_function([new Registers(), 'call']);
            register_shutdown_function(static fn() => null);
            $realm->runShutdownFunctions();
            echo 'then ';
            $realm->runShutdownFunctions();
            echo Registers::$called;
            PHP, <<<'PHP'
            final class Registers
            {
                public static int $called = 0;
                public function call(): void { echo 'first '; }
                public function __destruct() { for ($i = 0; $i < 100; ++$i) { register_shutdown_function(static fn() => ++self::$called); } }
            }
            PHP];

        yield 'a shutdown function that calls the others' => ['first second third then', <<<'PHP'
            BEGIN(realm, );
            register_shutdown_function(static function () use ($realm): void {
                echo 'first ';
                register_shutdown_function(static fn() => print('third '));
                $realm->runShutdownFunctions();
            });
            register_shutdown_function(static fn() => print('second '));
            $realm->runShutdownFunctions();
            echo 'then';
            $realm->runShutdownFunctions();
            PHP];

        foreach (['a short body' => 1, 'a body in a file' => 1_000_000] as $name => $times) {
            yield "code that closes every stream it finds, and $name" => ['one true true', <<<PHP
                \$body = str_repeat('two', $times);
                \$realm->begin([], [], [], [], [], [], \$body);
                BEGIN(realm, one);
                echo file_get_contents('php://input'), ' ';
                foreach (get_resources('stream') as \$stream) {
                    is_resource(\$stream) && in_array(stream_get_meta_data(\$stream)['stream_type'], ['TEMP', 'MEMORY'], true) && fclose(\$stream);
                }
                \$realm->begin([], [], [], [], [], [], \$body);
                var_export(file_get_contents('php://input') === \$body);
                echo ' ';
                foreach (get_resources('stream') as \$stream) {
                    is_resource(\$stream) && in_array(stream_get_meta_data(\$stream)['stream_type'], ['TEMP', 'MEMORY'], true) && fclose(\$stream);
                }
                var_export(file_get_contents('php://input') === \$body);
                PHP];
        }

        yield 'a filter that opens streams when a handle of php://input is closed' => ['closed two', <<<'PHP'
            BEGIN(realm, one);
            for ($i = 0; $i < 50; ++$i) { fclose(fopen('php://memory', 'w')); }
            stream_filter_register('opens', Opens::class);
            $handle = fopen('php://input', 'r');
            stream_filter_append($handle, 'opens');
            BEGIN(realm, two);
            echo file_get_contents('php://input');
            PHP, <<<'PHP'
            final class Opens extends php_user_filter
            {
                private static array $kept = [];
                public function onClose(): void
                {
                    echo 'closed ';
                    for ($i = 0; $i < 5000; ++$i) { self::$kept[] = fopen('php://memory', 'w'); }
                }
            }
            PHP];

        yield 'an SplFileObject of the request before' => ["one\nof one two", <<<'PHP'
            BEGIN(realm, one\nof one);
            $file = new SplFileObject('php://input');
            echo $file->fgets();
            BEGIN(realm, two);
            for ($i = 0; $i < 10; ++$i) { $others[] = fopen('php://memory', 'w'); }
            echo $file->fgets(), ' ', file_get_contents('php://input');
            $file = null;
            PHP];

        yield 'an SplFileObject of each request, of which one body at a time is held' => ['few', <<<'PHP'
            for ($i = 0; $i < 100; ++$i) {
                $realm->begin([], [], [], [], [], [], str_repeat('x', 40_000));
                $file = new SplFileObject('php://input');
            }
            echo count(scandir('/proc/self/fd')) < 50 ? 'few' : 'many';
            $file = null;
            PHP];

        yield 'a fiber that waits in a filter of php://input' => ['one two', <<<'PHP'
            BEGIN(realm, one);
            stream_filter_register('waits', Waits::class);
            $handle = fopen('php://input', 'r');
            stream_filter_append($handle, 'waits');
            $fiber = new Fiber(static fn() => print fread($handle, 100));
            $fiber->start();
            BEGIN(realm, two);
            $fiber->resume();
            echo ' ', file_get_contents('php://input');
            PHP, <<<'PHP'
            final class Waits extends php_user_filter
            {
                public function filter($in, $out, &$consumed, bool $closing): int
                {
                    while ($bucket = stream_bucket_make_writeable($in)) {
                        $consumed += $bucket->datalen;
                        stream_bucket_append($out, $bucket);
                    }
                    $closing || Fiber::suspend();

                    return PSFS_PASS_ON;
                }
            }
            PHP];

        yield 'a handle that outlives its realm' => ["''", <<<'PHP'
            Realm::leave();
            $first = new Realm();
            $first->enter();
            BEGIN(first, of one);
            $handle = fopen('php://input', 'r');
            Realm::leave();
            unset($first);
            $realm->enter();
            BEGIN(realm, secret of another client);
            var_export(fread($handle, 100));
            PHP];

        // The last reference goes after the save handler of the request has been put back, or before.
        foreach (['' => '', 'unset($_SESSION);' => 'close, '] as $unset => $closed) {
            yield "a destructor that opens a session; $unset" => ["close, destructed, {$closed}status 1, NULL", <<<PHP
            BEGIN(realm, );
            session_set_save_handler(new Sessions(), false);
            session_id('first');
            session_start();
            \$_SESSION['object'] = new StartsASession();
            session_write_close();
            $unset
            BEGIN(realm, );
            echo 'status ', session_status(), ', ';
            var_export(\$_SESSION ?? null);
            PHP, self::SESSIONS];
        }

        yield 'a session that is not there' => ['undefined NULL 1', <<<'PHP'
            set_error_handler(static fn(int $level, string $message) => print str_contains($message, 'variable $_SESSION') ? 'undefined ' : $message);
            BEGIN(realm, );
            $values = [$_SESSION];
            echo json_encode($values[0]) === 'null' ? 'NULL ' : 'something ', count($values);
            restore_error_handler();
            PHP];

        yield 'the last fiber of a realm ends, and a destructor of the realm would leave it' => ['ended refused resumed', <<<'PHP'
            Realm::leave();
            $last = new Realm();
            $last->enter();
            Holder::$value = new Leaves();
            $fiber = new Fiber(static function (): void { Fiber::suspend(); echo 'ended '; });
            $fiber->start();
            Realm::leave();
            unset($last);
            $fiber->resume();
            echo 'resumed';
            $realm->enter();
            PHP, <<<'PHP'
            final class Holder { public static ?object $value = null; }
            final class Leaves { public function __destruct() { try { Fiber::suspend(); echo 'left '; } catch (FiberError) { echo 'refused '; } } }
            Realm::isolate(['Holder::$value'], false);
            PHP];

        yield 'a session that an included file has begun outside of realms' => ['0123', <<<'PHP'
            Realm::leave();
            for ($i = 0; $i < 4; ++$i) {
                $one = new Realm();
                $one->enter();
                BEGIN(one, );
                session_id("realm$i");
                session_start();
                session_destroy();
                Realm::leave();
                unset($one);
                $others[] = str_repeat((string) $i, 60);
                echo $i;
            }
            $realm->enter();
            PHP, <<<'PHP'
            file_put_contents($file = tempnam(sys_get_temp_dir(), 'weft'), '<?php session_id("base"); session_start();');
            include $file;
            unlink($file);
            PHP];

        yield 'a session that is open when its realm goes' => ['0 1 2 files closed', <<<'PHP'
            Realm::leave();
            for ($i = 0; $i < 3; ++$i) {
                $one = new Realm();
                $one->enter();
                BEGIN(one, );
                session_id('same');
                // From PHP 8.6 on, an id that is not known yet is replaced otherwise.
                session_start(['use_strict_mode' => 0]);
                echo $_SESSION['i'] ?? 0, ' ';
                $_SESSION['i'] = $i + 1;
                Realm::leave();
                unset($one);
            }
            $open = array_map(static fn(string $file): string => (string) @readlink($file), glob('/proc/self/fd/*'));
            echo preg_grep('/sess_same/', $open) === [] ? 'files closed' : 'a file is open';
            $realm->enter();
            PHP];

        yield 'the name of a static property that its autoloader changes' => ['AbcAbcAbc', <<<'PHP'
            Realm::leave();
            $name = 'Abc' . str_repeat('Abc', 2) . '::value';
            spl_autoload_register(static function (string $class) use (&$name): void {
                $name = null;
                echo $class;
                eval("final class $class { public static int \$value = 1; }");
            });
            $names = [&$name];
            try { Realm::isolate($names, false); } catch (Error) {}
            PHP];
    }

    /** One of a fiber that PHP destroys, or exit(), arrives in place of what is thrown meanwhile, whose destructors may throw in turn. */
    public function testExceptionsWhoseDestructorsAlwaysThrowGiveWayToAnExit(): void
    {
        $program = Subprocess::run(<<<'PHP'
            use Weft\Native\Realm;
            final class Endless extends Exception
            {
                public static int $left = 1000;
                public function __destruct() { if (--self::$left > 0) { throw new self(); } }
            }
            run(static function (): void {
                $hasExited = Realm::untilExit(static function (): void {
                    Weft\Native\receiveOutput(static fn(string $text) => throw new Endless());
                    ob_start(static fn(string $text) => exit());
                    echo 'x';
                    ob_end_flush();
                });
                fwrite(STDOUT, json_encode($hasExited) . (Endless::$left > 900 ? ' soon' : ' late'));
                Endless::$left = 0;
            });
            PHP, under: self::STRICT);

        self::assertSame(['', 'true soon', 0], [$program->errors, $program->output, $program->exitCode]);
    }

    public function testAnExitWhoseTextWaitsBeyondTheCallThatItWouldEndEndsTheProcess(): void
    {
        $program = Subprocess::run(<<<'PHP'
            use Weft\Native\Realm;
            final class Waits { public function __toString(): string { Fiber::suspend(); return 'x'; } }
            run(static function (): void {
                $fiber = new Fiber(static fn() => exit(new Waits()));
                var_dump(Realm::untilExit(static fn() => $fiber->start()));
                $fiber->resume();
                echo 'resumed';
            });
            PHP, under: self::STRICT);

        self::assertSame(['', "bool(false)\nx", 0], [$program->errors, $program->output, $program->exitCode]);
    }
}
