<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Tests\Bus\Fixtures\TemporaryDatabase;
use Weft\Tests\Http\HttpTestCase;
use Weft\Tests\Http\ServerProcess;
use Weft\Tests\Timing;

/** Handlers of messages that end the process. */
final class ExitTest extends HttpTestCase
{
    use TemporaryDatabase;

    /** @return iterable<string, array{string}> */
    public static function brokers(): iterable
    {
        yield 'memory' => ['"memory:"'];
        yield 'memory, and the database of handlers' => ['"memory:", Weft\Sql\Database::connect($dsn)'];
        yield 'SQLite' => ['$dsn, Weft\Sql\Database::connect($dsn)'];
    }

    /** @dataProvider brokers */
    #[DataProvider('brokers')]
    public function testAHandlerThatCallsExitIsNamedAndTheExitCodeIsItsOwn(string $broker): void
    {
        $server = $this->consuming($broker, 'exit(3);');

        $log = self::logOfEnd($server);

        self::assertMatchesRegularExpression('~critical Message Pay [0-9a-f-]{36} in Payments::pay called exit\(\): the process ends, messages of queue "payments" in flight are redelivered~', $log);
        self::assertStringNotContainsString('DeadlockException', $log);
        self::assertStringNotContainsString('PHP ', $log);
        self::assertSame(3, $server->end()[0]);
    }

    public function testATaskOfAHandlerThatCallsExitIsNamedAsItsMessage(): void
    {
        $server = $this->consuming('"memory:"', 'async(static function () { delay(0.01); exit(3); });');

        $log = self::logOfEnd($server);

        self::assertStringContainsString('in Payments::pay called exit()', $log);
        self::assertSame(3, $server->end()[0]);
    }

    public function testAFatalErrorOfAHandlerIsLoggedWithItsMessage(): void
    {
        $server = $this->consuming('"memory:"', 'ini_set("memory_limit", "32M"); $eaten = []; while (true) { $eaten[] = str_repeat("x", 100_000); }');

        $log = self::logOfEnd($server);

        self::assertMatchesRegularExpression('~critical Message Pay [0-9a-f-]{36} in Payments::pay failed: Allowed memory size of 33554432 bytes exhausted~', $log);
        self::assertSame(255, $server->end()[0]);
    }

    public function testRequestsInFlightAreFinishedWhenAHandlerOfMessagesCallsExit(): void
    {
        $server = $this->consuming('"memory:"', 'exit(3);', '$routes->get("/slow", static function () { fwrite(STDERR, "working"); gate("answer"); return Response::text("answer"); });');
        $slow = $server->connect();
        \fwrite($slow, "GET /slow HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        self::assertTrue($server->awaitLog('working'));

        $server->open('die');
        self::assertTrue($server->awaitLog('in Payments::pay called exit(): the process ends, 1 other requests are finished first'), $server->log());
        $server->open('answer');

        self::assertSame('answer', self::bodyOf(ServerProcess::readAll($slow)));
        self::assertSame(3, $server->end()[0]);
    }

    /** Lets the handler end the process. */
    private static function logOfEnd(ServerProcess $server): string
    {
        $pid = $server->pid();
        $server->open('die');
        Timing::until(static fn(): bool => \str_contains((string) \file_get_contents("/proc/$pid/stat"), ') Z '), 'the end of the process');

        return $server->log();
    }

    /** A server that handles two messages at a time; the second one waits for the gate `die`. */
    private function consuming(string $broker, string $ending, string $routes = ''): ServerProcess
    {
        $dsn = \var_export($this->dsn(), true);

        return $this->serve(<<<PHP
            final class Pay { public function __construct(public readonly bool \$dies) {} }
            final class Payments
            {
                #[Weft\Bus\CommandHandler]
                public function pay(Pay \$command): void
                {
                    if (!\$command->dies) {
                        delay(600);
                    }
                    gate('die');
                    $ending
                }
            }
            \$dsn = $dsn;
            \$bus = Weft\Bus\Bus::connect($broker)->handlers(new Payments());
            \$app->onStart(static function () use (\$bus): void {
                \$bus->queue('payments')->declare();
                \$bus->sendAll([new Pay(false), new Pay(true)]);
            })->consume(\$bus, 'payments', concurrency: 2);
            $routes
            PHP);
    }
}
