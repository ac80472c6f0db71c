<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

/** The trace of a request, in what its handler sends and logs. */
final class TraceTest extends HttpTestCase
{
    private const TRACE = '0af7651916cd43dd8448eb211c80319c';
    private const PARENT = '00-' . self::TRACE . '-b7ad6b7169203331-01';

    public function testAMessageThatAHandlerSendsContinuesTheTraceOfTheRequest(): void
    {
        $server = $this->serve(<<<'PHP'
            final class Note { public function __construct(public readonly string $text) {} }
            final class Notes { public array $seen = []; #[Weft\Bus\EventListener] public function note(Note $note, Weft\Bus\Context $context): void { $this->seen[] = $context->header("traceparent"); } }
            $notes = new Notes();
            $bus = Weft\Bus\Bus::connect("memory:")->handlers($notes);
            $app->consume($bus, "notes");
            $routes->post("/", static function (Request $request) use ($bus, $notes) {
                async(static fn() => $bus->publish(new Note("inherited by a task")))->await();
                for ($waits = 0; $notes->seen === [] && $waits < 6_000; $waits++) {
                    delay(0.01);
                }
                return ["message" => array_pop($notes->seen), "own" => $request->trace()->traceparent, "headers" => Weft\Runtime\Trace::current()->headers()];
            });
            PHP);

        $seen = self::answered($server->get('/', '-X', 'POST', '-H', 'traceparent: ' . self::PARENT, '-H', 'tracestate: a=1'));

        self::assertSame(self::TRACE, substr($seen['message'], 3, 32));
        self::assertNotSame(self::PARENT, $seen['message']);
        self::assertSame(['traceparent' => $seen['own'], 'tracestate' => 'a=1'], $seen['headers']);
        self::assertSame(self::TRACE, substr($seen['own'], 3, 32));
    }

    public function testARequestWithoutATraceBeginsOne(): void
    {
        $server = $this->serve('$routes->get("/", static fn(Request $request) => ["id" => $request->trace()->traceId(), "again" => Weft\Runtime\Trace::current()->traceId()]);');

        $first = self::answered($server->get('/'));
        $malformed = self::answered($server->get('/', '-H', 'traceparent: 00-x-y-01'));

        self::assertMatchesRegularExpression('/^[0-9a-f]{32}$/', $first['id']);
        self::assertSame($first['id'], $first['again']);
        self::assertNotSame($first['id'], $malformed['id']);
    }

    public function testRecordsOfAHandlerHaveTraceAndSpan(): void
    {
        $logger = 'new Weft\Log\StreamLogger(format: Weft\Log\Format::Json)';
        $server = $this->serve('$logger = ' . $logger . '; $routes->get("/", static function () use ($logger): void { $logger->info("handled by hand"); })->get("/broken", static fn() => throw new LogicException("x"));', app: $logger);

        $server->get('/', '-H', 'traceparent: ' . self::PARENT);
        $server->get('/broken', '-H', 'traceparent: ' . self::PARENT);

        self::assertTrue($server->awaitLog('GET /broken'));
        foreach (['handled by hand', 'LogicException'] as $text) {
            $records = array_filter(explode("\n", $server->log()), static fn(string $line): bool => str_contains($line, $text));
            $record = json_decode((string) reset($records), true, flags: JSON_THROW_ON_ERROR);
            self::assertSame(self::TRACE, $record['trace_id']);
            self::assertMatchesRegularExpression('/^[0-9a-f]{16}$/', $record['span_id']);
        }
    }

    public function testAFieldThatIsNoAsciiIsIgnoredAndTheFailureOfTheHandlerIsLogged(): void
    {
        $server = $this->serve(
            '$routes->get("/", static fn() => Weft\Runtime\Trace::current()->headers())->get("/loud", static function () { echo "loud"; })->get("/broken", static fn() => throw new LogicException("x"));',
            app: 'new Weft\Log\StreamLogger(format: Weft\Log\Format::Json)',
        );

        self::assertStatus(204, $server->get('/loud', '-H', "traceparent: \xff"));
        self::assertStatus(500, $server->get('/broken', '-H', "traceparent: \xff"));
        self::assertTrue($server->awaitLog('GET /broken failed'));
        foreach (['loud', 'LogicException'] as $text) {
            self::assertSame(1, preg_match("/^.*$text.*$/m", $server->log(), $record));
            self::assertMatchesRegularExpression('/"trace_id":"[0-9a-f]{32}"/', $record[0]);
        }
        self::assertSame(['traceparent'], array_keys(self::answered($server->get('/', '-H', 'traceparent: ' . self::PARENT, '-H', 'tracestate: a=é'))));
    }

    /** @return array<string, mixed> */
    private static function answered(string $response): array
    {
        self::assertStatus(200, $response);

        return json_decode(self::bodyOf($response), true, flags: JSON_THROW_ON_ERROR);
    }
}
