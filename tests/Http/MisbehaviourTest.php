<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Http\Response;

final class MisbehaviourTest extends HttpTestCase
{
    private const HELLO = '$routes->get("/hello", static fn() => Response::text("hello"));';

    public function testAHandlerThatAnswersWithAStatusThatIsNoAnswerIsA500WithALogLine(): void
    {
        $server = $this->serve('$routes->get("/", static fn() => new Response(101));');

        self::assertStatus(500, $server->get('/'));
        self::assertTrue($server->awaitLog('there is no final status 101'));
    }

    public function testOutputOfAHandlerIsInTheLogAndInNoResponse(): void
    {
        $server = $this->serve(self::HELLO . '$routes->get("/people/{id}", static function (int $id) { echo "<loud $id>"; async(static function () { echo "<child>"; }); delay(0.01); return Response::text("answer"); });');

        $response = $server->get('/people/7');

        self::assertSame('answer', self::bodyOf($response));
        self::assertTrue($server->awaitLog('Discarded output'));
        self::assertMatchesRegularExpression('~warning Discarded output printed by GET /people/\{id\} from 127\.0\.0\.1:\d+: <loud 7><child>~', $server->log());
        self::assertSame('hello', self::bodyOf($server->get('/hello')));
        self::assertSame([0, "ended\n"], $server->stop());
    }

    public function testALoggerThatThrowsChangesNoAnswerAndDoesNotEndTheServer(): void
    {
        $server = $this->serve(
            self::HELLO . '$routes->get("/loud", static function () { echo "loud"; return Response::text("answer"); })->get("/slow", static function () { delay(60); })->get("/broken", static fn() => throw new LogicException("broken"));',
            ', limits: new Limits(deadline: 0.2)',
            app: 'new class extends Psr\Log\AbstractLogger { public function log($level, $message, array $context = []): void { throw new RuntimeException("the disk is full"); } }',
        );

        self::assertSame('answer', self::bodyOf($server->get('/loud')));
        self::assertStatus(503, $server->get('/slow'));
        self::assertStatus(500, $server->get('/broken'));
        self::assertStatus(400, $server->exchange("GET / HTTP/1.1\r\n\r\n"));
        self::assertSame('hello', self::bodyOf($server->get('/hello')));
        foreach (['the disk is full; the record was: Discarded output printed by GET /loud', 'GET /slow from 127.0.0.1', 'GET /broken failed: LogicException: broken', 'HTTP server refused 1 × '] as $record) {
            self::assertTrue($server->awaitLog($record), $server->log());
        }
    }

    public function testTemplatesOfRequestsThatWaitMeanwhileDoNotMix(): void
    {
        $server = $this->serve('$routes->get("/{name}", static function (string $name) { ob_start(); echo "<$name "; delay($name === "a" ? 0.2 : 0.1); ob_start(); echo "inner"; delay(0.1); $inner = ob_get_clean(); echo "$inner $name>"; return Response::text(ob_get_clean()); });');
        $sockets = [];
        foreach (['a', 'b', 'c'] as $name) {
            $sockets[$name] = $server->connect();
            fwrite($sockets[$name], "GET /$name HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        }

        foreach ($sockets as $name => $socket) {
            self::assertSame("<$name inner $name>", self::bodyOf(ServerProcess::readAll($socket)));
        }
        self::assertSame('', $server->log());
    }

    public function testOutputOfAFiberOfTheUsersOwnIsInTheBufferOfItsTask(): void
    {
        $server = $this->serve(<<<'PHP'
            $routes->get("/{name}", static function (string $name) {
                ob_start();
                echo "<$name ";
                $inner = new Fiber(static function () use ($name) {
                    ob_start();
                    (new Fiber(static function () { echo "innermost "; }))->start();
                    $nested = ob_get_clean();
                    echo "inner $nested";
                    Fiber::suspend();
                    echo "again ";
                });
                $inner->start();
                delay($name === "a" ? 0.2 : 0.1);
                $inner->resume();
                delay(0.01);
                echo "$name>";
                return Response::text(ob_get_clean());
            });
            PHP);
        $sockets = [];
        foreach (['a', 'b', 'c'] as $name) {
            $sockets[$name] = $server->connect();
            fwrite($sockets[$name], "GET /$name HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        }

        foreach ($sockets as $name => $socket) {
            self::assertSame("<$name inner innermost again $name>", self::bodyOf(ServerProcess::readAll($socket)));
        }
        self::assertSame('', $server->log());
    }

    public function testABufferThatAHandlerLeavesOpenIsClosedAndLogged(): void
    {
        $server = $this->serve(self::HELLO . '$routes->get("/", static function () { ob_start(); echo "forgotten"; return Response::text("answer"); });');

        self::assertSame('answer', self::bodyOf($server->get('/')));
        self::assertTrue($server->awaitLog(': forgotten'));
        self::assertSame('hello', self::bodyOf($server->get('/hello')));
        self::assertStringNotContainsString('hello', $server->log());
    }

    public function testExitIsA500NamesTheRouteAndLetsOtherRequestsFinish(): void
    {
        $server = $this->serve(<<<'PHP'
            $routes->get("/slow", static function () { fwrite(STDERR, "working"); delay(0.4); return Response::text("finished"); });
            $routes->get("/exit/{code}", static function (int $code) { exit($code); });
            PHP);
        $slow = $server->connect();
        fwrite($slow, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
        self::assertTrue($server->awaitLog('working'));

        self::assertStatus(500, $server->get('/exit/3'));

        self::assertStringEndsWith('finished', ServerProcess::readAll($slow));
        self::assertSame([3, ''], $server->end());
    }

    public function testExitWithAResourceOfAPoolLetsARequestFinishThatWaitsForIt(): void
    {
        $server = $this->serve(<<<'PHP'
            $pool = new Weft\Pool\Pool(static fn() => new stdClass(), new Weft\Pool\PoolOptions(size: 1));
            $gate = new Weft\Runtime\Channel(1);
            $routes->get("/exit", static fn() => $pool->with(static function () use ($gate) { fwrite(STDERR, "holding"); $gate->receive(); exit(3); }));
            $routes->get("/waiting", static fn() => $pool->with(static fn() => Response::text("finished")));
            $routes->get("/open", static function () use ($gate, $pool) { while ($pool->stats()["waiting"] === 0) { delay(0.001); } $gate->send(true); return Response::text("open"); });
            PHP);
        $exit = $server->connect();
        fwrite($exit, "GET /exit HTTP/1.1\r\nHost: a\r\n\r\n");
        self::assertTrue($server->awaitLog('holding'));
        $waiting = $server->connect();
        fwrite($waiting, "GET /waiting HTTP/1.1\r\nHost: a\r\n\r\n");

        $server->get('/open');

        self::assertStringEndsWith('finished', ServerProcess::readAll($waiting), $server->log());
        self::assertStatus(500, ServerProcess::readAll($exit));
    }

    public function testExitAfterAResourceWasHandedOverLetsTheRequestFinishThatHasItNow(): void
    {
        $server = $this->serve(<<<'PHP'
            $pool = new Weft\Pool\Pool(static fn() => new stdClass(), new Weft\Pool\PoolOptions(size: 1));
            $gate = new Weft\Runtime\Channel(1);
            $routes->get("/exit", static function () use ($pool, $gate) { $pool->with(static function () use ($gate) { fwrite(STDERR, "holding"); $gate->receive(); }); exit(3); });
            $routes->get("/waiting", static fn() => $pool->with(static fn() => Response::text("finished")));
            $routes->get("/open", static function () use ($gate, $pool) { while ($pool->stats()["waiting"] === 0) { delay(0.001); } $gate->send(true); return Response::text("open"); });
            PHP);
        $exit = $server->connect();
        fwrite($exit, "GET /exit HTTP/1.1\r\nHost: a\r\n\r\n");
        self::assertTrue($server->awaitLog('holding'));
        $waiting = $server->connect();
        fwrite($waiting, "GET /waiting HTTP/1.1\r\nHost: a\r\n\r\n");

        $server->get('/open');

        self::assertStringEndsWith('finished', ServerProcess::readAll($waiting), $server->log());
        self::assertStatus(500, ServerProcess::readAll($exit));
        self::assertSame([3, ''], $server->end());
    }

    public function testExitOfARequestToWhichAResourceWasHandedOverLetsTheOthersOfTheSameTurnFinish(): void
    {
        $server = $this->serve(<<<'PHP'
            $pool = new Weft\Pool\Pool(static fn() => new stdClass(), new Weft\Pool\PoolOptions(size: 1));
            $gate = new Weft\Runtime\Channel(3);
            $routes->get("/holds", static fn() => $pool->with(static function () use ($gate) { fwrite(STDERR, "holding"); $gate->receive(); return Response::text("held"); }));
            $routes->get("/ready", static function () use ($gate) { fwrite(STDERR, "ready"); $gate->receive(); return Response::text("finished"); });
            $routes->get("/exit", static fn() => $pool->with(static function () { exit(3); }));
            $routes->get("/open", static function () use ($gate, $pool) {
                while ($pool->stats()["waiting"] === 0) { delay(0.001); }
                foreach (range(1, 3) as $_) { $gate->send(true); }
                return Response::text("open");
            });
            PHP);
        $holds = $server->connect();
        fwrite($holds, "GET /holds HTTP/1.1\r\nHost: a\r\n\r\n");
        self::assertTrue($server->awaitLog('holding'));
        $ready = [$server->connect(), $server->connect()];
        foreach ($ready as $connection) {
            fwrite($connection, "GET /ready HTTP/1.1\r\nHost: a\r\n\r\n");
        }
        self::assertTrue($server->awaitLog('readyready'));
        $exit = $server->connect();
        fwrite($exit, "GET /exit HTTP/1.1\r\nHost: a\r\n\r\n");

        $server->get('/open');

        foreach ($ready as $connection) {
            self::assertStringEndsWith('finished', ServerProcess::readAll($connection), $server->log());
        }
        self::assertStringEndsWith('held', ServerProcess::readAll($holds), $server->log());
        self::assertStatus(500, ServerProcess::readAll($exit));
        self::assertSame([3, ''], $server->end());
    }

    public function testExitOfANewTaskOnTheFiberOfARequestThatHasEndedResumesNoOtherTwice(): void
    {
        $server = $this->serve(<<<'PHP'
            $gate = new Weft\Runtime\Channel(4);
            $begin = static function () use ($gate) { fwrite(STDERR, "+"); $gate->receive(); };
            $routes->get("/waits", static function () use ($begin) { $begin(); delay(0.1); return Response::text("finished"); });
            $routes->get("/starts", static function () use ($begin) { $begin(); async(static function () { exit(3); }); delay(0.1); return Response::text("started"); });
            // Its fiber takes the new task before the loop goes on.
            $routes->get("/ends", static function () use ($begin) { $begin(); return Response::text("ended"); });
            $routes->get("/open", static function () use ($gate) { foreach (range(1, 4) as $_) { $gate->send(true); } return Response::text("open"); });
            PHP);
        $answers = [];
        foreach (['/waits', '/waits', '/starts', '/ends'] as $number => $path) {
            $answers[$number] = $server->connect();
            fwrite($answers[$number], "GET $path HTTP/1.1\r\nHost: a\r\n\r\n");
            self::assertTrue($server->awaitLog(str_repeat('+', $number + 1)));
        }

        $server->get('/open');

        $ends = array_map(static fn ($answer): string => substr(ServerProcess::readAll($answer), -8), $answers);
        self::assertSame(['finished', 'finished'], \array_slice($ends, 0, 2), $server->log());
        self::assertStringEndsWith('ended', $ends[3]);
        self::assertSame([3, ''], $server->end());
    }

    public function testExitAfterAWaitIsNamedInTheLog(): void
    {
        $server = $this->serve('$routes->get("/exit/{code}", static function (int $code) { delay(0.01); exit($code); });');

        self::assertStatus(500, $server->get('/exit/0'));

        self::assertTrue($server->awaitLog('called exit(): the process ends, 0 other requests are finished first'));
        self::assertMatchesRegularExpression('~critical GET /exit/\{code\} from 127\.0\.0\.1:\d+ called exit\(\)~', $server->log());
    }

    public function testMiddlewareThatReturnsNothingIsA500ThatNamesIt(): void
    {
        $server = $this->serve('$routes->use(static fn(Request $request, $next) => $next($request), static function (Request $request, $next): void { $next($request); }); $routes->get("/nothing", static fn() => null);' . self::HELLO);

        self::assertStatus(500, $server->get('/hello'));
        self::assertTrue($server->awaitLog('GET /hello failed'));
        self::assertMatchesRegularExpression('~UsageError: The middleware closure at weft\w+:\d+ returned null: it must return \$next\(\$request\), or a response of its own~', $server->log());
    }

    public function testNothingIsTheResultOfAHandlerAlsoBehindMiddleware(): void
    {
        $server = $this->serve('$routes->use(static fn(Request $request, $next) => $next($request)); $routes->get("/nothing", static fn() => null)->get("/void", static function (): void {})->fallback(static fn() => null);');

        foreach (['/nothing', '/void', '/elsewhere'] as $path) {
            self::assertStatus(204, $server->get($path));
        }
    }

    public function testAStreamSendsWhatItsFunctionReturns(): void
    {
        $server = $this->serve('$routes->use(new Compression()); $routes->get("/yield", static fn() => Response::stream(static function () { yield "a"; delay(0.01); yield "b"; }))->get("/list", static fn() => Response::stream(static fn() => ["c", "d"]));');

        self::assertSame('ab', self::withoutChunks($server->get('/yield')));
        self::assertSame('cd', self::withoutChunks($server->get('/list')));
    }

    /** @dataProvider lostResults */
    #[DataProvider('lostResults')]
    public function testAResultThatAStreamCannotSendAbortsIt(string $response, string $type): void
    {
        $server = $this->serve("\$routes->get('/stream', static fn() => $response);" . self::HELLO);

        self::assertStringEndsNotWith("0\r\n\r\n", $server->get('/stream'));
        self::assertTrue($server->awaitLog('GET /stream failed'));
        self::assertMatchesRegularExpression("~The function closure at weft\\w+:\\d+ of a streamed response returned $type, which is not sent~", $server->log());
        self::assertSame('hello', self::bodyOf($server->get('/hello')));
    }

    /** @return iterable<string, array{string, string}> */
    public static function lostResults(): iterable
    {
        yield 'a text' => ['Response::stream(static fn() => "abc")', 'string'];
        yield 'a number' => ['Response::stream(static fn() => 7)', 'int'];
        yield 'the text of an event' => ['Response::events(static fn() => "abc")', 'string'];
        yield 'an event' => ['Response::events(static fn() => new ServerSentEvent("abc"))', 'Weft\\\\Http\\\\ServerSentEvent'];
    }

    /** @dataProvider streams */
    #[DataProvider('streams')]
    public function testATaskThatFailsInAStreamAbortsItWithALogLine(string $response): void
    {
        $server = $this->serve("\$routes->get('/stream', static fn() => $response);" . self::HELLO);

        self::assertStringEndsNotWith("0\r\n\r\n", $server->get('/stream'));
        self::assertTrue($server->awaitLog('GET /stream failed: DomainException: the task failed'));
        self::assertSame('hello', self::bodyOf($server->get('/hello')));
    }

    /** @return iterable<string, array{string}> */
    public static function streams(): iterable
    {
        $task = 'async(static function () { delay(0.01); throw new DomainException("the task failed"); });';
        yield 'that has returned' => ["Response::stream(static function (BodyWriter \$body) { \$body->write('a'); $task })"];
        yield 'that goes on' => ["Response::stream(static function (BodyWriter \$body) { \$body->write('a'); $task delay(60); })"];
        yield 'of chunks' => ["Response::stream((static function () { yield 'a'; $task yield 'b'; })())"];
        yield 'of events' => ["Response::events(static function (EventWriter \$events) { \$events->send('a'); $task })"];
    }

    public function testATaskOfAStreamWritesUntilItEnds(): void
    {
        $server = $this->serve('$routes->get("/stream", static fn() => Response::stream(static function (BodyWriter $body) { async(static function () use ($body) { delay(0.01); $body->write("late"); }); }));');

        self::assertSame('late', self::withoutChunks($server->get('/stream')));
    }

    private static function withoutChunks(string $response): string
    {
        return implode('', preg_split('/[0-9a-f]+\r\n|\r\n/', self::bodyOf($response)) ?: []);
    }

    public function testMemoryThatRunsOutIsA500ForTheOneAnd503ForTheOthersAndTheLogSaysWhy(): void
    {
        $server = $this->serve(<<<'PHP'
            ini_set("memory_limit", "32M");
            $routes->get("/slow", static function () { fwrite(STDERR, "working"); delay(30); return Response::text(""); });
            $routes->get("/eat", static function () { $eaten = []; while (true) { $eaten[] = str_repeat("x", 100_000); } });
            PHP);
        $slow = $server->connect();
        fwrite($slow, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
        self::assertTrue($server->awaitLog('working'));

        self::assertStatus(500, $server->get('/eat'));

        self::assertStatus(503, ServerProcess::readAll($slow));
        self::assertTrue($server->awaitLog('the process ends, 1 other requests are answered 503'));
        self::assertMatchesRegularExpression('~GET /eat from \S+ failed: Allowed memory size of 33554432 bytes exhausted~', $server->log());
    }

    public function testMemoryThatTheSystemRefusesEndsTheProcessWithoutACrash(): void
    {
        // Some versions of PHP call exit() of C then, and shutdown functions do not run; for others it is a fatal error. No address space has 128 TiB.
        exec(escapeshellarg(\PHP_BINARY) . ' -n -d memory_limit=-1 -r ' . escapeshellarg('str_repeat("x", 1 << 47);') . ' 2>&1', $output, $code);
        self::assertStringContainsString('Out of memory', implode("\n", $output));
        $server = $this->serve('ini_set("memory_limit", "-1"); $routes->get("/eat", static fn() => Response::text(str_repeat("x", 1 << 47)));');

        $server->get('/eat');

        self::assertTrue($server->awaitLog('Out of memory'));
        self::assertSame([$code, ''], $server->end());
    }

    public function testTheErrorThatEndsTheProcessIsOnThePageWhileOneDebugs(): void
    {
        foreach (['true' => 'failed: Class Broken contains 2 abstract methods', 'false' => "500 Internal Server Error\n"] as $debug => $page) {
            $server = $this->serve('$routes->get("/broken", static fn() => eval("class Broken implements ArrayAccess { function offsetGet(mixed \$a): mixed {} function offsetSet(mixed \$a, mixed \$b): void {} }"));', app: "debug: $debug");
            self::assertStringContainsString($page, $server->get('/broken'));
            $server->end();
        }
    }

    public function testAHandlerThatIgnoresItsCancellationIsAnswered503AtTheDeadlineAllTheSame(): void
    {
        $server = $this->serve(
            self::HELLO . '$routes->get("/people/{id}", static function () { while (true) { try { delay(60); } catch (Throwable) { } } });',
            ', limits: new Limits(deadline: 0.5)',
            app: 'grace: 0.2',
        );

        self::assertStatus(503, $server->get('/people/1'));

        self::assertTrue($server->awaitLog('is past its deadline and is cancelled'));
        self::assertMatchesRegularExpression('~warning GET /people/\{id\} from \S+ is past its deadline .* waits for Weft\\\\delay\(\) at \S+:\d+~', $server->log());
        self::assertSame('hello', self::bodyOf($server->get('/hello')));
        $server->kill();
    }

    public function testAWrongReturnTypeNamesTheRoute(): void
    {
        $server = $this->serve('$routes->get("/people/{id}", static fn() => 1);');

        self::assertStatus(500, $server->get('/people/1'));
        self::assertTrue($server->awaitLog('"request":"GET /people/{id} from'));
        self::assertMatchesRegularExpression('~The handler Closure \S+:\d+ of .{1,3}/people/\{id\}.{1,3} returned int \(1\); return a Response, or an object or array for JSON~', $server->log());
    }

    public function testAReturnedValueThatNoResponseCanBeMadeOfIsToldWithItsHandler(): void
    {
        $wrong = [
            '"abc"' => 'returned string ("abc"); return Response::text($text), or an object or array for JSON',
            '\Weft\async(static fn() => Response::text("late"))' => 'returned a task; return what await() of the task returns',
            'new DateTimeImmutable()' => 'returned DateTimeImmutable, which is a single value in JSON; return an object or array that contains it, or a Response',
            '(static function () { yield 1; })()' => 'returned a generator; return Response::stream() with it to stream, or an array of its values',
            'new ArrayObject()' => 'returned ArrayObject, which cannot be encoded as JSON: it is an internal class of PHP',
            '["a" => [new ArrayObject()]]' => 'returned an array with ArrayObject, which cannot be encoded as JSON: it is an internal class of PHP',
            '["people" => [["name" => "Ada"], ["name" => "\xff"]]]' => 'returned data that cannot be encoded as JSON: Malformed UTF-8 characters, possibly incorrectly encoded, at $.people[1].name',
            '["rate" => INF]' => 'returned data that cannot be encoded as JSON: Inf and NaN cannot be JSON encoded, at $.rate',
        ];
        foreach (['' => '', 'with a middleware: ' => '$routes->use(static fn(Weft\Http\Request $request, Closure $next) => $next($request));'] as $case => $middleware) {
            $routes = '';
            foreach (\array_keys($wrong) as $at => $returned) {
                $routes .= "\$routes->get('/{$at}', static fn() => {$returned});\n";
            }
            $server = $this->serve($middleware . $routes, app: 'debug: true');
            foreach (\array_values($wrong) as $at => $told) {
                $page = \htmlspecialchars_decode($server->get("/{$at}"), \ENT_QUOTES);
                self::assertStatus(500, $page);
                self::assertMatchesRegularExpression('~The handler Closure \S+:\d+ of "/' . $at . '" ' . \preg_quote($told, '~') . '~', $page, $case . $told);
            }
            $server->stop();
        }
    }

    public function testDataThatHasNoJsonIsToldWithThePlaceOfTheValue(): void
    {
        // It is encoded by its properties.
        $itself = new class implements \JsonSerializable {
            public string $name = "\xff";

            public function jsonSerialize(): static
            {
                return $this;
            }
        };
        foreach (['at $.itself.name' => ['itself' => $itself], 'at $.people[1].name' => ['people' => [['name' => 'Ada'], ['name' => "\xff"]]], 'at $' => "\xff", 'at a key of $.a' => ['a' => ["\xff" => 1]], 'at $.o.rate' => ['o' => (object) ['rate' => \NAN]]] as $place => $data) {
            try {
                Response::json($data);
                self::fail($place);
            } catch (\JsonException $fault) {
                self::assertStringEndsWith(", {$place}", $fault->getMessage());
                self::assertSame($fault->getPrevious()?->getCode(), $fault->getCode());
            }
        }
    }

    public function testRequestsAreInTheTaskListWithRouteClientAgeAndWhatTheyWaitFor(): void
    {
        $server = $this->serve(<<<'PHP'
            $routes->get("/people/{id}", static function () { fwrite(STDERR, "waiting"); delay(600); return Response::text(""); });
            $routes->get("/tasks", static fn() => Response::text(implode("\n", array_map(strval(...), tasks()))));
            PHP);
        $slow = $server->connect();
        fwrite($slow, "GET /people/1 HTTP/1.1\r\nHost: a\r\n\r\n");
        self::assertTrue($server->awaitLog('waiting'));
        $list = $server->get('/tasks');

        self::assertMatchesRegularExpression('~^#\d+ GET /people/\{id\} from 127\.0\.0\.1:\d+ \(\d+\.\d{3} s old, .*\) waits for Weft\\\\delay\(\) at \S+:\d+$~m', $list);
        self::assertMatchesRegularExpression('~^#\d+ GET /tasks from 127\.0\.0\.1:\d+ .* running$~m', $list);
        $server->kill();
    }
}
