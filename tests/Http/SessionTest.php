<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Http\Sessions;
use Weft\Http\Sessions\FileStore;
use Weft\Tests\Sql\Support\EmptyDatabase;

final class SessionTest extends HttpTestCase
{
    private const PREDIS = '/usr/share/php/Predis/autoload.php';
    /** A client of a few lines. */
    private const OWN_CLIENT = <<<'PHP'
        (static function () {
            $send = static function (object $client, array $command): mixed {
                fwrite($client->stream, '*' . count($command) . "\r\n" . implode('', array_map(static fn(string $one): string => '$' . strlen($one) . "\r\n$one\r\n", $command)));
                return ($client->reply)();
            };
            $pool = new Weft\Pool\Pool(static function (): object {
                $client = new stdClass();
                $client->stream = stream_socket_client('unix://SOCKET');
                $client->reply = static function () use ($client): mixed {
                    $line = rtrim(fgets($client->stream));
                    $rest = substr($line, 1);
                    return match ($line[0]) {
                        ':' => (int) $rest,
                        '+' => $rest,
                        '$' => $rest === '-1' ? null : substr(stream_get_contents($client->stream, (int) $rest + 2), 0, -2),
                        '*' => array_map(static fn(): mixed => ($client->reply)(), range(1, (int) $rest)),
                        default => throw new RuntimeException($line),
                    };
                };
                return $client;
            });
            return new Weft\Http\Sessions\RedisStore($pool, send: $send);
        })()
        PHP;

    private const ROUTES = <<<'PHP'
        $routes->get("/plain", static fn() => Response::text("plain"))
            ->get("/see", static fn(Request $request) => $request->session()->values())
            ->post("/set/{name}/{value}", static function (Request $request, string $name, string $value): void { $request->session()->set($name, $value); })
            ->get("/stream", static fn(Request $request) => Response::stream(static fn(): iterable => [json_encode($request->session()->values())], "application/json"))
            ->get("/file", static fn() => Response::file("DIRECTORY/plain.txt"))
            ->post("/together/{name}", static function (Request $request, string $name): void {
                static $arrived = 0;
                $request->session()->values();
                for ($arrived++; $arrived < 40;) {
                    delay(0.005);
                }
                $request->session()->set($name, 1);
            })
            ->post("/slow/{name}", static function (Request $request, string $name): void { $request->session()->values(); touch("DIRECTORY/at-$name"); gate($name); $request->session()->set($name, 1); })
            ->post("/remove/{name}", static function (Request $request, string $name): void { $request->session()->remove($name); })
            ->post("/login", static function (Request $request): void { $request->session()->renew()->set("user", 7); })
            ->post("/fail", static function (Request $request): void { $request->session()->set("failures", 1); throw new HttpException(401, "no"); })
            ->post("/slow-login", static function (Request $request): void { $request->session()->values(); touch("DIRECTORY/at-login"); gate("login"); $request->session()->renew()->set("user", 7); })
            ->post("/renew/{name}", static function (Request $request, string $name): void { $request->session()->values(); touch("DIRECTORY/at-$name"); gate($name); $request->session()->renew(); })
            ->post("/slow-logout", static function (Request $request): void { $request->session()->values(); touch("DIRECTORY/at-logout"); gate("logout"); $request->session()->destroy(); })
            ->post("/switch", static function (Request $request): void { $request->session()->destroy()->set("user", 8); })
            ->post("/logout", static function (Request $request): void { $request->session()->destroy(); });
        PHP;

    /** Once a file asks for it, another request deletes the old session as soon as a renewal has written the new one. */
    private const LOGOUT_DURING_RENEWAL = <<<'PHP'
        (new class(new Weft\Http\Sessions\FileStore('DIRECTORY/sessions')) implements Weft\Http\SessionStore {
            public function __construct(private Weft\Http\SessionStore $inner) {}
            public function read(string $id): ?Weft\Http\Sessions\StoredSession { return $this->inner->read($id); }
            public function write(string $id, string $data, int $version, float $seconds): bool {
                $isWritten = $this->inner->write($id, $data, $version, $seconds);
                if ($version === 0 && @unlink('DIRECTORY/end-it')) {
                    foreach (array_diff(array_map(basename(...), glob('DIRECTORY/sessions/*')), [$id]) as $other) {
                        $this->inner->delete($other);
                    }
                }
                return $isWritten;
            }
            public function delete(string $id): void { $this->inner->delete($id); }
            public function prune(): void { $this->inner->prune(); }
        })
        PHP;

    /** Another request is always first where a session exists. */
    private const OTHERS_FIRST = <<<'PHP'
        (new class(new Weft\Http\Sessions\FileStore('DIRECTORY/sessions')) implements Weft\Http\SessionStore {
            public function __construct(private Weft\Http\SessionStore $inner) {}
            public function read(string $id): ?Weft\Http\Sessions\StoredSession { return $this->inner->read($id); }
            public function write(string $id, string $data, int $version, float $seconds): bool {
                fprintf(STDERR, $version > 0 ? "another was first;" : "stored for %.0f;", $seconds);
                return $version === 0 && $this->inner->write($id, $data, $version, $seconds);
            }
            public function delete(string $id): void { $this->inner->delete($id); }
            public function prune(): void { $this->inner->prune(); }
        })
        PHP;

    /** Writes to a session again and again until it sees that the session is gone. */
    private const WRITER = <<<'PHP'
        foreach (['SessionStore', 'Sessions/StoredSession', 'Sessions/FileStore'] as $class) {
            require "$argv[1]/src/Http/$class.php";
        }
        $store = new Weft\Http\Sessions\FileStore($argv[2]);
        while (($id = fgets(STDIN)) !== false) {
            for ($i = 0; $i < 100 && ($stored = $store->read(rtrim($id))) !== null; $i++) {
                $store->write(rtrim($id), $stored->data, $stored->version, 100.0);
                usleep(50);
            }
            echo $id;
        }
        PHP;

    private Directory $directory;
    private ?EmptyDatabase $database = null;

    protected function setUp(): void
    {
        $this->directory = new Directory();
    }

    protected function tearDown(): void
    {
        parent::tearDown();
        $redis = (int) @file_get_contents("{$this->directory->path}/redis.pid");
        $redis > 0 && posix_kill($redis, SIGTERM);
        while ($redis > 0 && posix_kill($redis, 0)) {
            usleep(5_000);
        }
        $this->directory->remove();
        $this->database?->drop();
    }

    /** @dataProvider stores */
    #[DataProvider('stores')]
    public function testValuesAreThereInTheNextRequestOfTheSameBrowser(string $store): void
    {
        $server = $this->withSessions($this->prepared($store));

        self::assertSame('', self::field($server->get('/plain'), 'set-cookie'));
        self::assertSame('', self::field($server->get('/see'), 'set-cookie'));
        $first = $server->get('/set/a/1', '-X', 'POST');
        self::assertMatchesRegularExpression('/^session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax$/', self::field($first, 'set-cookie'));
        $cookie = self::cookie($first);
        self::assertSame('', self::field($server->get('/set/b/2', '-X', 'POST', '-b', $cookie), 'set-cookie'));
        self::assertSame(['a' => '1', 'b' => '2'], self::seen($server, $cookie));
        $server->get('/remove/a', '-X', 'POST', '-b', $cookie);
        self::assertSame(['b' => '2'], self::seen($server, $cookie));
        self::assertSame([], self::seen($server, 'session=' . str_repeat('x', 43)));
        self::assertSame('private, no-cache', self::field($server->get('/see', '-b', $cookie), 'cache-control'));
    }

    /** @dataProvider stores */
    #[DataProvider('stores')]
    public function testRequestsAtTheSameTimeKeepTheValuesOfEachOther(string $store): void
    {
        $server = $this->withSessions($this->prepared($store));
        $cookie = self::cookie($server->get('/set/a/1', '-X', 'POST'));

        $slow = array_map(static fn(string $name): Curl => $server->follow("/slow/$name", '-i', '-X', 'POST', '-b', $cookie), ['x', 'y', 'z']);
        array_map($this->awaitArrival(...), ['x', 'y', 'z']);
        array_map($server->open(...), ['x', 'y', 'z']);
        array_map(static fn(Curl $curl): mixed => $curl->end(), $slow);

        $seen = self::seen($server, $cookie);
        ksort($seen);
        self::assertSame(['a' => '1', 'x' => 1, 'y' => 1, 'z' => 1], $seen);
    }

    /** @dataProvider stores */
    #[DataProvider('stores')]
    public function testManyRequestsAtTheSameTimeAllKeepTheirValues(string $store): void
    {
        $server = $this->withSessions($this->prepared($store));
        $cookie = self::cookie($server->get('/set/a/1', '-X', 'POST'));

        [$code, $output] = $server->curl('/together/k[1-40]', '-X', 'POST', '-b', $cookie, '--parallel', '--parallel-immediate', '--parallel-max', '40', '-w', "%{http_code} \n");

        // Some versions of curl print a progress meter between the responses.
        self::assertSame([0, 40], [$code, substr_count($output, "204 \n")], $output . $server->log());
        self::assertCount(41, self::seen($server, $cookie));
    }

    public function testARequestThatRefreshesASessionAfterAnotherDoesNotFail(): void
    {
        $server = $this->withSessions(str_replace('DIRECTORY', $this->directory->path, self::OTHERS_FIRST), ', idle: 60.0');
        $cookie = self::cookie($server->get('/set/a/1', '-X', 'POST'));
        // It is stored as one that was last written long ago.
        foreach (glob("{$this->directory->path}/sessions/*") as $file) {
            file_put_contents($file, preg_replace('/("\\\\u0000touched":)[\d.]+/', '${1}1.0', (string) file_get_contents($file), -1, $changed));
            self::assertSame(1, $changed);
        }

        self::assertSame(['a' => '1'], self::seen($server, $cookie));
        self::assertTrue($server->awaitLog('another was first;'));
    }

    public function testASessionIsStoredForTheTimeUntilItsNextRefreshAsWell(): void
    {
        foreach (['idle: 100.0' => '110;', 'idle: 100.0, lifetime: 50.0' => '50;'] as $limits => $seconds) {
            $server = $this->withSessions(str_replace('DIRECTORY', $this->directory->path, self::OTHERS_FIRST), ", $limits");

            $server->get('/set/a/1', '-X', 'POST');

            self::assertTrue($server->awaitLog("stored for $seconds"), $server->log());
        }
    }

    public function testAStreamThatMayReadTheSessionIsNotCachedForOthers(): void
    {
        file_put_contents("{$this->directory->path}/plain.txt", 'plain');
        $server = $this->withSessions($this->prepared('file'));
        $cookie = self::cookie($server->get('/set/a/1', '-X', 'POST'));

        $response = $server->get('/stream', '-b', $cookie);

        self::assertSame(['{"a":"1"}', 'private, no-cache'], [self::bodyOf($response), self::field($response, 'cache-control')]);
        self::assertSame('', self::field($server->get('/stream'), 'cache-control'));
        self::assertSame(['', ''], [self::field($server->get('/file', '-b', $cookie), 'cache-control'), self::field($server->get('/plain', '-b', $cookie), 'cache-control')]);
    }

    /** @dataProvider stores */
    #[DataProvider('stores')]
    public function testALoginHasANewIdAndALogoutEndsIt(string $store): void
    {
        $server = $this->withSessions($this->prepared($store));
        $before = self::cookie($server->get('/set/cart/1', '-X', 'POST'));

        $after = self::cookie($server->get('/login', '-X', 'POST', '-b', $before));

        self::assertNotSame($before, $after);
        self::assertSame(['cart' => '1', 'user' => 7], self::sorted(self::seen($server, $after)));
        self::assertSame([], self::seen($server, $before));
        $unknown = 'session=' . str_repeat('f', 43);
        self::assertNotSame($unknown, self::cookie($server->get('/login', '-X', 'POST', '-b', $unknown)));
        $logout = $server->get('/logout', '-X', 'POST', '-b', $after);
        self::assertStringContainsString('Max-Age=0', self::field($logout, 'set-cookie'));
        self::assertSame([], self::seen($server, $after));
    }

    public function testASessionThatEndsWhileARequestRunsDoesNotComeBack(): void
    {
        $server = $this->withSessions($this->prepared('file'));
        $cookie = self::cookie($server->get('/set/a/1', '-X', 'POST'));
        $slow = $server->follow('/slow/late', '-i', '-X', 'POST', '-b', $cookie);
        $this->awaitArrival('late');

        $server->get('/logout', '-X', 'POST', '-b', $cookie);
        $server->open('late');
        $slow->end();

        self::assertSame([], self::seen($server, $cookie));
    }

    /** @dataProvider stores */
    #[DataProvider('stores')]
    public function testASessionThatEndsWhileARequestRenewsItDoesNotComeBack(string $store): void
    {
        $server = $this->withSessions($this->prepared($store));
        $cookie = self::cookie($server->get('/set/user/7', '-X', 'POST'));
        $renewal = $server->follow('/renew/late', '-i', '-X', 'POST', '-b', $cookie);
        $this->awaitArrival('late');

        $server->get('/logout', '-X', 'POST', '-b', $cookie);
        $server->open('late');

        self::assertSame('', self::field($renewal->end(), 'set-cookie'));
        self::assertSame([], self::seen($server, $cookie));
    }

    public function testASessionThatEndsWhileItsRenewalIsWrittenDoesNotComeBack(): void
    {
        $server = $this->withSessions(str_replace('DIRECTORY', $this->directory->path, self::LOGOUT_DURING_RENEWAL));
        $cookie = self::cookie($server->get('/set/user/7', '-X', 'POST'));

        touch("{$this->directory->path}/end-it");
        $server->open('now');
        $renewal = $server->get('/renew/now', '-X', 'POST', '-b', $cookie);

        self::assertFileDoesNotExist("{$this->directory->path}/end-it");
        self::assertSame('', self::field($renewal, 'set-cookie'));
        self::assertSame([], glob("{$this->directory->path}/sessions/*"));
    }

    /** @dataProvider stores */
    #[DataProvider('stores')]
    public function testOfTwoRenewalsAtTheSameTimeOneGivesTheSessionItsId(string $store): void
    {
        $server = $this->withSessions($this->prepared($store));
        $before = self::cookie($server->get('/set/user/7', '-X', 'POST'));
        $renewals = array_map(static fn(string $name): Curl => $server->follow("/renew/$name", '-i', '-X', 'POST', '-b', $before), ['x', 'y']);
        array_map($this->awaitArrival(...), ['x', 'y']);

        array_map($server->open(...), ['x', 'y']);
        $cookies = array_values(array_filter(array_map(static fn(Curl $curl): string => self::field((string) $curl->end(), 'set-cookie'), $renewals)));

        self::assertCount(1, $cookies);
        $after = (string) strstr($cookies[0], ';', true);
        self::assertSame(['user' => '7'], self::seen($server, $after));
        self::assertSame([], self::seen($server, $before));
        $server->get('/logout', '-X', 'POST', '-b', $after);
        self::assertSame([], self::seen($server, $after));
    }

    /** @dataProvider stores */
    #[DataProvider('stores')]
    public function testALogoutThatOverlapsARenewalEndsTheRenewedSession(string $store): void
    {
        $server = $this->withSessions($this->prepared($store));
        $before = self::cookie($server->get('/set/a/1', '-X', 'POST'));
        $logout = $server->follow('/slow-logout', '-i', '-X', 'POST', '-b', $before);
        $this->awaitArrival('logout');

        $after = self::cookie($server->get('/login', '-X', 'POST', '-b', $before));
        $again = self::cookie($server->get('/login', '-X', 'POST', '-b', $after));
        self::assertSame(['a' => '1', 'user' => 7], self::sorted(self::seen($server, $again)));
        $server->open('logout');
        $logout->end();

        self::assertSame([[], [], []], array_map(static fn(string $cookie): array => self::seen($server, $cookie), [$before, $after, $again]));
    }

    public function testALoginIsNotUndoneByARequestBesideIt(): void
    {
        $server = $this->withSessions($this->prepared('file'));
        $before = self::cookie($server->get('/set/a/1', '-X', 'POST'));
        $slow = $server->follow('/slow/late', '-i', '-X', 'POST', '-b', $before);
        $this->awaitArrival('late');

        $after = self::cookie($server->get('/login', '-X', 'POST', '-b', $before));
        $server->open('late');

        self::assertSame('', self::field($slow->end(), 'set-cookie'));
        self::assertSame(['a' => '1', 'user' => 7], self::sorted(self::seen($server, $after)));
        self::assertSame([], self::seen($server, $before));
    }

    public function testALoginKeepsWhatOtherRequestsHaveSetMeanwhile(): void
    {
        $server = $this->withSessions($this->prepared('file'));
        $before = self::cookie($server->get('/set/a/1', '-X', 'POST'));
        $login = $server->follow('/slow-login', '-i', '-X', 'POST', '-b', $before);
        $this->awaitArrival('login');

        $server->get('/set/b/2', '-X', 'POST', '-b', $before);
        $server->open('login');

        self::assertSame(['a' => '1', 'b' => '2', 'user' => 7], self::sorted(self::seen($server, self::cookie($login->end()))));
    }

    public function testAValueAfterTheEndOfASessionBeginsANewOne(): void
    {
        $server = $this->withSessions($this->prepared('file'));
        $before = self::cookie($server->get('/set/a/1', '-X', 'POST'));

        $after = self::cookie($server->get('/switch', '-X', 'POST', '-b', $before));

        self::assertNotSame($before, $after);
        self::assertSame(['user' => 8], self::seen($server, $after));
        self::assertSame([], self::seen($server, $before));
    }

    public function testADeletedFileDoesNotComeBackByAWriterOfAnotherProcess(): void
    {
        $directory = "{$this->directory->path}/sessions";
        $store = new FileStore($directory);
        $writer = proc_open([PHP_BINARY, '-r', self::WRITER, dirname(__DIR__, 2), $directory], [['pipe', 'r'], ['pipe', 'w']], $pipes);
        $back = 0;
        $ids = $said = [];
        for ($i = 0; $i < 100; $i++) {
            $id = hash('sha256', "session $i");
            $store->write($id, 'data', 0, 100.0);
            fwrite($pipes[0], "$id\n");
            usleep(random_int(200, 1_000));
            $store->delete($id);
            $said[] = rtrim((string) fgets($pipes[1]));
            $ids[] = $id;
            $back += is_file("$directory/$id") ? 1 : 0;
        }
        fclose($pipes[0]);
        proc_close($writer);

        self::assertSame($ids, $said);
        self::assertSame(0, $back);
    }

    public function testAFailureThatIsAResponseKeepsTheSession(): void
    {
        $server = $this->withSessions($this->prepared('file'));

        $failed = $server->get('/fail', '-X', 'POST');

        self::assertStatus(401, $failed);
        self::assertSame(['failures' => 1], self::seen($server, self::cookie($failed)));
    }

    public function testAnIdleSessionEndsAndAnOldOneToo(): void
    {
        foreach (['idle: 0.2', 'idle: 60.0, lifetime: 0.2'] as $limits) {
            $server = $this->withSessions($this->prepared('file'), ", $limits");
            $cookie = self::cookie($server->get('/set/a/1', '-X', 'POST'));
            $deadline = microtime(true) + 60.0;
            while (($seen = self::seen($server, $cookie)) !== [] && str_contains($limits, 'lifetime') && microtime(true) < $deadline) {
                usleep(20_000);
            }
            if ($seen !== []) {
                usleep(400_000);
                $seen = self::seen($server, $cookie);
            }
            self::assertSame([], $seen, $limits);
        }
    }

    public function testFilesOfSessionsAreForTheirUserAloneAndHaveNoIds(): void
    {
        $server = $this->withSessions($this->prepared('file'));
        $cookie = self::cookie($server->get('/set/a/1', '-X', 'POST'));

        $files = glob("{$this->directory->path}/sessions/*");

        self::assertCount(1, $files);
        self::assertSame(0o600, fileperms($files[0]) & 0o777);
        self::assertStringNotContainsString(substr($cookie, 8), $files[0] . file_get_contents($files[0]));
        $store = new FileStore("{$this->directory->path}/sessions");
        $store->write(str_repeat('a', 64), 'old', 0, 0.001);
        usleep(2_000);
        $store->prune();
        self::assertCount(1, glob("{$this->directory->path}/sessions/*"));
    }

    public function testARouteOutsideOfSessionsSaysSo(): void
    {
        $server = $this->serve('$routes->get("/", static fn(Request $request) => $request->session()->values());');

        self::assertStatus(500, $server->get('/'));
        self::assertTrue($server->awaitLog('add the middleware Weft\Http\Sessions'));
    }

    public function testWrongArgumentsAreRefused(): void
    {
        $store = new FileStore($this->directory->path);
        foreach ([['idle' => 0.0], ['lifetime' => -1.0], ['idle' => NAN], ['cookie' => 'a b'], ['cookie' => '__Host-a', 'secure' => false]] as $arguments) {
            try {
                new Sessions($store, ...$arguments);
                self::fail('it was taken: ' . print_r($arguments, true));
            } catch (\ValueError) {
                $this->addToAssertionCount(1);
            }
        }
        $this->expectException(\ValueError::class);
        (new \Weft\Http\Session(static fn(): array => []))->set('a', new \DateTime());
    }

    /** @return iterable<string, array{string}> */
    public static function stores(): iterable
    {
        yield 'files' => ['file'];
        yield 'SQLite' => ['sqlite'];
        yield 'PostgreSQL' => ['postgres'];
        yield 'MariaDB or MySQL' => ['mariadb'];
        yield 'Redis by phpredis' => ['phpredis'];
        yield 'Redis by Predis' => ['predis'];
        yield 'Redis by a client of the application' => ['redis'];
    }

    /** @return string PHP code that makes the store */
    private function prepared(string $store): string
    {
        if (in_array($store, ['redis', 'phpredis', 'predis'], true)) {
            return $this->redis($store);
        }
        if ($store === 'file') {
            return "new Weft\\Http\\Sessions\\FileStore('{$this->directory->path}/sessions')";
        }
        $this->database = new EmptyDatabase($store);

        return 'new Weft\Http\Sessions\SqlStore(Weft\Sql\Database::connect(' . var_export($this->database->dsn(), true) . '))';
    }

    /** A server of the test's own on a Unix socket. */
    private function redis(string $client): string
    {
        $isInstalled = ['redis' => true, 'phpredis' => extension_loaded('redis'), 'predis' => is_file(self::PREDIS)];
        $isInstalled[$client] || self::markTestSkipped("$client is not installed");
        $binary = trim((string) shell_exec('command -v redis-server'));
        if ($binary === '') {
            self::markTestSkipped('redis-server is not installed');
        }
        $socket = "{$this->directory->path}/redis.sock";
        exec("$binary --port 0 --unixsocket $socket --daemonize yes --save '' --dir {$this->directory->path} --pidfile {$this->directory->path}/redis.pid --logfile {$this->directory->path}/redis.log");
        for ($deadline = microtime(true) + 60.0; @stream_socket_client("unix://$socket") === false && microtime(true) < $deadline;) {
            usleep(5_000);
        }
        $pools = [
            'phpredis' => 'new Weft\Http\Sessions\RedisStore(new Weft\Pool\Pool(static function (): Redis { $redis = new Redis(); $redis->connect("SOCKET"); return $redis; }))',
            'predis' => '[require_once "' . self::PREDIS . '", new Weft\Http\Sessions\RedisStore(new Weft\Pool\Pool(static fn(): Predis\Client => new Predis\Client(["scheme" => "unix", "path" => "SOCKET"])))][1]',
            'redis' => self::OWN_CLIENT,
        ];

        return str_replace('SOCKET', $socket, $pools[$client]);
    }

    private function withSessions(string $store, string $options = ''): ServerProcess
    {
        // Debian's phpredis needs igbinary.
        $extensions = str_contains($store, 'new Redis(') ? array_filter(['igbinary', 'redis'], extension_loaded(...)) : [];

        return $this->serve("\$routes->use(new Weft\\Http\\Sessions($store, secure: false$options));" . str_replace('DIRECTORY', $this->directory->path, self::ROUTES), extensions: array_values($extensions));
    }

    /** Waits until the request has read its session. */
    private function awaitArrival(string $name): void
    {
        for ($deadline = microtime(true) + 60.0; !is_file("{$this->directory->path}/at-$name") && microtime(true) < $deadline;) {
            usleep(2_000);
            clearstatcache();
        }
    }

    private static function cookie(string $response): string
    {
        return strstr(self::field($response, 'set-cookie'), ';', true) ?: throw new \RuntimeException("no cookie in: $response");
    }

    /** @return array<string, mixed> */
    private static function seen(ServerProcess $server, string $cookie): array
    {
        $response = $server->get('/see', '-b', $cookie);
        self::assertStatus(200, $response);

        return json_decode(self::bodyOf($response), true, flags: JSON_THROW_ON_ERROR);
    }

    /**
     * @param array<string, mixed> $values
     *
     * @return array<string, mixed>
     */
    private static function sorted(array $values): array
    {
        ksort($values);

        return $values;
    }
}
