<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Symfony;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Tests\Http\HttpTestCase;
use Weft\Tests\Http\ServerProcess;
use Weft\Tests\Timing;

/** Kernels with FrameworkBundle and WeftBundle in a server. */
final class KernelTest extends HttpTestCase
{
    /** Pages that count requests in the session. */
    private const COUNTER = <<<'PHP'
        [
            "/count" => static function ($request) {
                $session = $request->getSession();
                $session->set("count", $session->get("count", 0) + 1);
                $request->query->has("exit") && exit;
                if ($request->query->has("cancelled")) {
                    Weft\current()->cancel();
                    delay(1.0);
                }
                return new Answer((string) $session->get("count"));
            },
        ]
        PHP;

    private string $directory = '';

    protected function setUp(): void
    {
        $this->directory = \sys_get_temp_dir() . '/weft-kernel-' . \bin2hex(\random_bytes(6));
        \mkdir($this->directory);
    }

    protected function tearDown(): void
    {
        parent::tearDown();
        \exec('rm -rf ' . \escapeshellarg($this->directory));
    }

    /** @return iterable<string, array{string}> */
    public static function waysToLeave(): iterable
    {
        yield 'exit' => ['/exit'];
        yield 'cancellation' => ['/wait'];
    }

    /** @dataProvider waysToLeave */
    #[DataProvider('waysToLeave')]
    public function testAKernelThatIsReplacedReleasesItsSessionAndItsConnections(string $path): void
    {
        $server = $this->serveKernel(<<<'PHP'
            [
                "/start" => static function ($request) { $request->getSession()->set("user", "ada"); return new Answer("started"); },
                "/exit" => static function ($request, $kernel) { $request->getSession()->get("user"); $kernel->getContainer()->get(Held::class)->acquire(); exit; },
                "/wait" => static function ($request, $kernel) { $request->getSession()->get("user"); $kernel->getContainer()->get(Held::class)->acquire(); error_log("waits"); delay(60.0); },
                "/held" => static fn($request, $kernel) => new Answer($kernel->getContainer()->get(Held::class)->acquire() ? "free" : "locked"),
                "/user" => static fn($request) => new Answer((string) $request->getSession()->get("user")),
            ]
            PHP, booting: 'static fn() => gc_disable()', arguments: ', cancelOnDisconnect: true');
        $cookie = \explode(';', self::field($server->get('/start'), 'set-cookie'))[0];
        self::assertNotSame('', $cookie, $server->log());
        $socket = $server->connect();
        \fwrite($socket, "GET $path HTTP/1.1\r\nHost: a\r\nConnection: close\r\nCookie: $cookie\r\n\r\n");
        if ($path === '/wait') {
            self::assertTrue($server->awaitLog('waits'), $server->log());
        } else {
            \stream_get_contents($socket);
        }
        \fclose($socket);

        Timing::until(static fn (): bool => self::bodyOf($server->get('/held')) === 'free', 'the connection is free');
        self::assertSame('ada', self::bodyOf($server->exchange("GET /user HTTP/1.1\r\nHost: a\r\nConnection: close\r\nCookie: $cookie\r\n\r\n")), $server->log());
    }

    /** @return iterable<string, array{string}> */
    public static function handlers(): iterable
    {
        yield 'DSN' => ['file://DIRECTORY/files'];
        yield 'environment' => ['%env(KERNEL_TEST_SESSIONS)%'];
    }

    /** @dataProvider handlers */
    #[DataProvider('handlers')]
    public function testPhpsOwnSessionFilesBecomeThoseOfWeftInTheSameDirectory(string $handler): void
    {
        $handler = \var_export(\strtr($handler, ['DIRECTORY' => $this->directory]), true);
        $server = $this->serveKernel(
            self::COUNTER,
            "['session' => ['handler_id' => $handler]]",
            "static fn() => \$_ENV['KERNEL_TEST_SESSIONS'] = 'file://$this->directory/files'",
        );

        $answer = $server->get('/count');
        self::assertSame('1', self::bodyOf($answer), $server->log());
        self::assertSame('2', self::bodyOf($this->again($server, '/count', $answer)));
        self::assertCount(1, \glob("$this->directory/files/session-*") ?: []);
    }

    public function testExitSavesTheSession(): void
    {
        $server = $this->serveKernel(self::COUNTER);

        $answer = $server->get('/count');
        self::assertSame('', self::bodyOf($this->again($server, '/count?exit=1', $answer)), $server->log());
        self::assertSame('3', self::bodyOf($this->again($server, '/count', $answer)), $server->log());
    }

    public function testTheSessionOfARequestThatIsCancelledIsNotSaved(): void
    {
        $server = $this->serveKernel(self::COUNTER);

        $answer = $server->get('/count');
        self::assertStatus(503, $this->again($server, '/count?cancelled=1', $answer));
        self::assertSame('2', self::bodyOf($this->again($server, '/count', $answer)), $server->log());
    }

    public function testShutdownFunctionsOfTheBootDoNotRunAfterARequest(): void
    {
        $pages = '["/page" => static function () { register_shutdown_function(static fn() => error_log("of the request")); return new Answer("page"); }]';
        $server = $this->serveKernel($pages, booting: 'static fn() => register_shutdown_function(static fn() => error_log("of the boot"))');

        self::assertSame('page', self::bodyOf($server->get('/page')), $server->log());
        self::assertTrue($server->awaitLog('of the request'));
        self::assertSame('page', self::bodyOf($server->get('/page')), $server->log());
        self::assertStringNotContainsString('of the boot', $server->log());
    }

    public function testTheHttpCacheOfTheFrameworkAnswers(): void
    {
        $server = $this->serveKernel('["/cached" => static fn() => (new Answer((string) hrtime(true)))->setPublic()->setSharedMaxAge(600)]', '["http_cache" => true]');

        $first = $server->get('/cached');
        self::assertStatus(200, $first);
        self::assertNotSame('', self::bodyOf($first));
        self::assertSame(self::bodyOf($first), self::bodyOf($server->get('/cached')), $server->log());
    }

    public function testAFileIsSentWithRangesAndDeletedAfterwards(): void
    {
        $directory = \var_export($this->directory, true);
        $server = $this->serveKernel("[
            '/file' => static fn() => (new BinaryFileResponse($directory . '/file.txt'))->setContentDisposition('attachment', 'a.txt'),
            '/once' => static fn() => (new BinaryFileResponse($directory . '/once.txt'))->deleteFileAfterSend(),
        ]");
        \file_put_contents("$this->directory/file.txt", '0123456789');
        \file_put_contents("$this->directory/once.txt", 'once');

        $whole = $server->get('/file');
        self::assertSame(['0123456789', '10', 'attachment; filename=a.txt'], [self::bodyOf($whole), self::field($whole, 'content-length'), self::field($whole, 'content-disposition')], $server->log());
        $part = $server->exchange("GET /file HTTP/1.1\r\nHost: a\r\nConnection: close\r\nRange: bytes=2-4\r\n\r\n");
        self::assertStatus(206, $part);
        self::assertSame(['234', '3', 'bytes 2-4/10'], [self::bodyOf($part), self::field($part, 'content-length'), self::field($part, 'content-range')]);
        self::assertStatus(416, $server->exchange("GET /file HTTP/1.1\r\nHost: a\r\nConnection: close\r\nRange: bytes=20-\r\n\r\n"));
        $head = $server->exchange("HEAD /file HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        self::assertSame(['', '10'], [self::bodyOf($head), self::field($head, 'content-length')]);
        self::assertSame('once', self::bodyOf($server->get('/once')));
        Timing::until(fn (): bool => !\file_exists("$this->directory/once.txt"), 'the file is deleted');
    }

    public function testAFileTakesNoMemoryWhileItsClientIsSlow(): void
    {
        $directory = \var_export($this->directory, true);
        $server = $this->serveKernel("[
            '/big' => static fn() => new BinaryFileResponse($directory . '/big'),
            '/tasks' => static fn() => new Answer(implode(' ', Weft\\tasks())),
            '/memory' => static fn() => new Answer(preg_match('/VmHWM:\\s+(\\d+)/', file_get_contents('/proc/self/status'), \$found) ? \$found[1] : '0'),
        ]");
        $file = \fopen("$this->directory/big", 'w');
        self::assertIsResource($file);
        \ftruncate($file, 256 << 20);
        $before = (int) self::bodyOf($server->get('/memory'));
        $client = $server->connect();
        \fwrite($client, "GET /big HTTP/1.1\r\nHost: a\r\n\r\n");
        self::assertStringStartsWith('HTTP/1.1 200', (string) \fgets($client));

        Timing::until(static fn (): bool => !\str_contains($server->get('/tasks'), 'GET /big'), 'the kernel has given the file away');
        self::assertLessThan($before + (128 << 10), (int) self::bodyOf($server->get('/memory')), 'KiB');
        \fclose($client);
    }

    private function again(ServerProcess $server, string $path, string $answer): string
    {
        $cookie = \explode(';', self::field($answer, 'set-cookie'))[0];

        return $server->exchange("GET $path HTTP/1.1\r\nHost: a\r\nConnection: close\r\nCookie: $cookie\r\n\r\n");
    }

    /**
     * @param string $pages PHP code: functions by path
     * @param string $framework PHP code: an array of the configuration
     */
    private function serveKernel(string $pages, string $framework = '[]', string $booting = 'null', string $arguments = ''): ServerProcess
    {
        $autoload = \var_export(__DIR__ . '/autoload.php', true);
        $directory = \var_export($this->directory, true);
        $code = \var_export("use Symfony\\Component\\HttpFoundation\\{BinaryFileResponse, Response as Answer, StreamedResponse}; use Weft\\Tests\\Bridge\\Symfony\\{Held, PageKernel}; use function Weft\\delay;\n"
            . "return [$pages, $framework, $booting];", true);

        return $this->serve("require_once $autoload;\n[\$pages, \$framework, \$booting] = eval($code);\n"
            . "\$routes->fallback(Weft\\Bridge\\Symfony\\SymfonyHandler::pool(static fn() => new Weft\\Tests\\Bridge\\Symfony\\PageKernel($directory, \$pages, \$framework, \$booting), 4));", $arguments, extensions: \array_values(\array_filter(['ctype', 'iconv', 'mbstring', 'tokenizer', 'xml'], static fn (string $name): bool => \is_file(\ini_get('extension_dir') . "/$name.so"))));
    }
}
