<?php

declare(strict_types=1);

namespace Weft\Tests\Examples;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Bench\HttpAnswer;
use Weft\Bench\Port;
use Weft\Tests\Cli\Supervised;

require_once __DIR__ . '/../../bench/autoload.php';

/** Runs the shop as docs/tutorials/getting-started.md says, and is unkind to it. */
final class ShopTest extends TestCase
{
    private const DEADLINE = 60.0;

    private string $directory;
    private int $port;
    private ?Supervised $shop = null;

    protected function setUp(): void
    {
        $this->directory = \sys_get_temp_dir() . '/weft-shop-' . \bin2hex(\random_bytes(6));
        \mkdir($this->directory);
        $this->port = Port::free();
    }

    protected function tearDown(): void
    {
        $this->shop?->signal(\SIGTERM);
        $this->shop?->end();
        \exec('rm -rf ' . \escapeshellarg($this->directory));
    }

    public function testAnOrderIsTakenStoredAndCounted(): void
    {
        $this->open();

        [$status, $headers] = $this->request('POST', '/orders', '{"item": "book", "quantity": 2}');
        self::assertSame(202, $status);
        self::assertMatchesRegularExpression('{^location: /orders/[0-9a-f]{32}$}mi', $headers);
        $this->awaitSold(['book' => 2]);

        \preg_match('{^location: (\S+)}mi', $headers, $location);
        [$status, , $body] = $this->request('GET', $location[1]);
        self::assertSame(200, $status);
        self::assertSame(['id' => \basename($location[1]), 'item' => 'book', 'quantity' => 2], \json_decode($body, true));
    }

    /** @dataProvider badOrders */
    #[DataProvider('badOrders')]
    public function testABadOrderIsRefused(string $body, int $expected, array $pointers): void
    {
        $this->open();

        [$status, , $problem] = $this->request('POST', '/orders', $body);
        self::assertSame($expected, $status);
        self::assertSame($pointers, \array_column(\json_decode($problem, true)['errors'] ?? [], 'pointer'), $problem);
        self::assertSame(404, $this->request('GET', '/orders/1')[0]);
        self::assertSame('{}', $this->request('GET', '/sold')[2]);
    }

    public static function badOrders(): iterable
    {
        yield 'no JSON' => ['book', 400, ['#']];
        yield 'no object' => ['5', 422, ['#']];
        yield 'no item' => ['{"quantity": 1}', 422, ['#/item']];
        yield 'no number' => ['{"item": "book", "quantity": "1"}', 422, ['#/quantity']];
        yield 'none' => ['{"item": "book", "quantity": 0}', 422, ['#/quantity']];
        yield 'two faults' => ['{"item": "", "quantity": -1}', 422, ['#/item', '#/quantity']];
        yield 'a name too long' => ['{"item": "' . \str_repeat('a', 101) . '", "quantity": 1}', 422, ['#/item']];
    }

    public function testEveryAcceptedOrderIsCountedOnceAlthoughWorkersAreKilled(): void
    {
        $this->open(workers: 2);
        $accepted = $unknown = 0;
        for ($i = 1; $i <= 300; ++$i) {
            $i % 60 === 0 && \posix_kill($this->workers()[$i / 60 % 2], \SIGKILL);
            // Without an answer nobody knows whether the order was taken before its worker was killed.
            $this->request('POST', '/orders', '{"item": "book", "quantity": 1}', retry: false)[0] === 202 ? ++$accepted : ++$unknown;
        }
        self::assertGreaterThan(200, $accepted);

        $rows = fn(): int => (int) (new \PDO("sqlite:{$this->directory}/weft-shop.sqlite"))->query('SELECT count(*) FROM orders')->fetchColumn();
        $this->awaitSold(static fn(array $sold): bool => ($sold['book'] ?? 0) >= $accepted && $sold['book'] === $rows());
        \usleep(300_000);
        $sold = $this->sold()['book'];
        self::assertSame($rows(), $sold, 'each order is counted once');
        self::assertGreaterThanOrEqual($accepted, $sold);
        self::assertLessThanOrEqual($accepted + $unknown, $sold);
    }

    private function open(int $workers = 1): void
    {
        $application = \dirname(__DIR__, 2) . '/examples/shop/app.php';
        $this->shop = new Supervised($application, ["--workers={$workers}"], ['TMPDIR' => $this->directory, 'PORT' => (string) $this->port, 'DATABASE_URL' => '', 'BROKER_URL' => '']);
        for ($i = 0; $i < $workers; ++$i) {
            $this->shop->wait('is ready');
        }
    }

    /** @return non-empty-list<int> process ids */
    private function workers(): array
    {
        $deadline = \microtime(true) + self::DEADLINE;
        do {
            $pids = \array_map('intval', \array_filter(\explode(' ', (string) \file_get_contents("/proc/{$this->shop->pid()}/task/{$this->shop->pid()}/children"))));
        } while (\count($pids) < 2 && \microtime(true) < $deadline && \usleep(10_000) === null);

        return $pids;
    }

    /**
     * @param array<string, int>|\Closure(array<string, int>): bool $expected
     * @return array<string, int>
     */
    private function awaitSold(array|\Closure $expected): array
    {
        $deadline = \microtime(true) + self::DEADLINE;
        do {
            $sold = $this->sold();
            if (\is_array($expected) ? $sold === $expected : $expected($sold)) {
                return $sold;
            }
            \usleep(20_000);
        } while (\microtime(true) < $deadline);

        self::fail('Sold are ' . \json_encode($sold) . "\n" . $this->shop->messages());
    }

    /** @return array<string, int> */
    private function sold(): array
    {
        [$status, , $body] = $this->request('GET', '/sold');
        self::assertSame(200, $status, $body);

        return \json_decode($body, true);
    }

    /** @return array{int, string, string} status, 0 without an answer; headers and body */
    private function request(string $method, string $path, string $body = '', bool $retry = true): array
    {
        $deadline = \microtime(true) + self::DEADLINE;
        do {
            $answer = @HttpAnswer::of("http://127.0.0.1:{$this->port}{$path}", ['method' => $method, 'content' => $body, 'header' => 'content-type: application/json', 'timeout' => 10]);
            if ($answer->body !== false && $answer->status !== 0) {
                return [$answer->status, \implode("\n", $answer->headers), $answer->body];
            }
        } while ($retry && \microtime(true) < $deadline);

        return [0, '', ''];
    }
}
