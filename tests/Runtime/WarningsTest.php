<?php

declare(strict_types=1);

namespace Weft\Tests\Runtime;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Pool\Hooks;
use Weft\Pool\Leases;
use Weft\Pool\Pool;
use Weft\Pool\PoolOptions;
use Weft\Sql\Session;
use Weft\Sql\Transaction;
use Weft\Tests\Pool\Support\Server;

use function Weft\delay;
use function Weft\detach;
use function Weft\run;

/** Warnings of background work, under an error handler that throws, as those of Laravel and Symfony do. */
final class WarningsTest extends TestCase
{
    private string $log = '';
    private string|false $before = false;

    protected function setUp(): void
    {
        $this->log = (string) \tempnam(\sys_get_temp_dir(), 'weft');
        $this->before = \ini_set('error_log', $this->log);
        \set_error_handler(static function (int $level, string $message): never {
            throw new \ErrorException($message, 0, $level);
        });
    }

    protected function tearDown(): void
    {
        \restore_error_handler();
        \ini_set('error_log', (string) $this->before);
        \unlink($this->log);
    }

    public function testTheFailureOfADetachedTaskDoesNotEndTheRun(): void
    {
        $this->runUntilLogged(static fn() => detach(static fn() => throw new \LogicException('no audit today')), 'LogicException: no audit today');
        self::assertStringContainsString('Weft: the error handler threw ErrorException; the warning was: Uncaught exception in detached task', $this->logged());
    }

    public function testWhatTheHandlerHasThrownIsLoggedToo(): void
    {
        \set_error_handler(static fn(): never => throw new \RuntimeException('the handler is broken'));
        try {
            $this->runUntilLogged(static fn() => detach(static fn() => throw new \LogicException('lost')), 'LogicException: lost');
        } finally {
            \restore_error_handler();
        }
        self::assertStringContainsString('Weft: the error handler threw RuntimeException: the handler is broken; the warning was: ', $this->logged());
    }

    public function testAResourceThatCannotBeClosedDoesNotEndTheRun(): void
    {
        $pool = self::pool(close: static fn() => throw new \LogicException('stuck'));
        $this->runUntilLogged(static fn() => $pool->discard($pool->borrow()), 'pool "tools": close of resource #1 threw LogicException: stuck');
    }

    public function testAResetThatFailsDoesNotEndTheRun(): void
    {
        $pool = self::pool(reset: static fn() => throw new \LogicException('dirty'));
        $this->runUntilLogged(static fn() => $pool->with(static fn() => null), 'pool "tools": reset of resource #1 threw LogicException: dirty; the resource is closed');
    }

    public function testALeakDoesNotEndTheRun(): void
    {
        $pool = self::pool(new Leases(leakThreshold: 0.01));
        $this->runUntilLogged(static fn() => $pool->borrow(), 'holds a resource for', $lease);
    }

    public function testAHookForLeaksThatThrowsDoesNotEndTheRun(): void
    {
        $pool = self::pool(new Leases(leakThreshold: 0.01), hooks: new Hooks(leaked: static fn() => throw new \LogicException('no pager')));
        $this->runUntilLogged(static fn() => $pool->borrow(), 'pool "tools": the hook "leaked" threw LogicException: no pager', $lease);
    }

    public function testAHookForLeaksThatThrowsDoesNotEndABorrowOutsideOfRun(): void
    {
        $pool = self::pool(new Leases(leakThreshold: 0.01), hooks: new Hooks(leaked: static fn() => throw new \LogicException('no pager')), size: 2);
        $lease = $pool->borrow();
        $deadline = \microtime(true) + 60.0;
        while (!\str_contains($this->logged(), 'the hook "leaked" threw') && \microtime(true) < $deadline) {
            $pool->reset();
            $other = $pool->borrow();
            $pool->return($other);
            \usleep(1_000);
        }
        self::assertTrue($lease->isOpen());
        self::assertStringContainsString('pool "tools": the hook "leaked" threw LogicException: no pager', $this->logged());
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testHooksOfADatabaseThatThrowDoNotEndTheRun(Server $server): void
    {
        $fails = static fn(mixed $subject) => throw new \LogicException($subject instanceof Session ? 'not returned' : 'no pager');
        $db = null;
        $this->runUntilLogged(function () use ($server, $fails, &$db): void {
            $db = $server->connect(new PoolOptions(size: 1, leases: new Leases(leakThreshold: 0.01)), new Hooks(returned: $fails, leaked: $fails));
            $db->transaction(function (Transaction $tx): void {
                $tx->execute('SELECT 1')->value();
                $this->waitUntilLogged('the hook "leaked" threw LogicException: no pager');
            });
        }, 'the hook "returned" threw LogicException: not returned; the connection is closed');
        self::assertStringContainsString('the hook "leaked" threw LogicException: no pager', $this->logged());
    }

    /** @return iterable<string, array{Server}> */
    public static function servers(): iterable
    {
        return Server::all();
    }

    /** Runs work in the main task, which goes on until PHP's log has the text. */
    private function runUntilLogged(\Closure $work, string $text, mixed &$kept = null): void
    {
        run(function () use ($work, $text, &$kept): void {
            $kept = $work();
            $this->waitUntilLogged($text);
        });
        self::assertStringContainsString($text, $this->logged());
    }

    private function waitUntilLogged(string $text): void
    {
        $deadline = \microtime(true) + 60.0;
        while (!\str_contains($this->logged(), $text) && \microtime(true) < $deadline) {
            delay(0.002);
        }
    }

    private function logged(): string
    {
        return (string) \file_get_contents($this->log);
    }

    private static function pool(Leases $leases = new Leases(), ?\Closure $reset = null, ?\Closure $close = null, Hooks $hooks = new Hooks(), int $size = 1): Pool
    {
        return new Pool(static fn(): \stdClass => new \stdClass(), new PoolOptions(size: $size, leases: $leases, name: 'tools'), reset: $reset, close: $close, hooks: $hooks);
    }
}
