<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Laravel;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Tests\Bridge\Symfony\Browser;
use Weft\Tests\Timing;

/** Applications that Octane's worker prepares: `octane/` stands in for it where Octane is not installed. */
final class OctaneTest extends TestCase
{
    use RequiresLaravel;
    use ServesState;

    private Browser $browser;

    protected function setUp(): void
    {
        $this->requireLaravel();
        $this->serveState(['OCTANE' => '1', 'APPLICATIONS' => '1']);
        \touch("$this->directory/app.db");
        $this->browser = new Browser($this->address);
    }

    public function testAStreamedResponseIsMadeInTheApplicationOfItsRequest(): void
    {
        foreach ([1, 2] as $number) {
            self::assertSame("first of $number;second of $number;", $this->browser->get("/streamed?n=$number")->body, $this->server->other);
        }
    }

    public function testARequestIsTerminatedAfterItsResponse(): void
    {
        self::assertSame('printed and answered', $this->browser->get('/terminated?n=1')->body);
        self::assertFileDoesNotExist("$this->directory/terminated-1");

        \touch("$this->directory/answered");
        Timing::until(fn(): bool => \file_exists("$this->directory/terminated-1"), 'the request is terminated');
        self::assertSame('first of 2;second of 2;', $this->browser->get('/streamed?n=2')->body);
    }

    public function testACancelledRequestIsNoErrorOfTheApplication(): void
    {
        $client = $this->browser->send('GET', '/wait');
        Timing::until(fn(): bool => \file_exists("$this->directory/waiting"), 'the request begins');
        \fclose($client);
        Timing::until(fn(): bool => \file_exists("$this->directory/ended"), 'the request is cancelled');

        self::assertSame(500, $this->browser->get('/fail')->status);
        $this->server->waitForOutput('on purpose');
        self::assertStringNotContainsString('ancelled', $this->server->other . \implode("\n", \array_column($this->server->log, 'message')));
    }

    /** @return iterable<string, array{string, string}> */
    public static function leavings(): iterable
    {
        yield 'by exit()' => ['/leave', 'left'];
        yield 'by a request that ends' => ['/begin', 'begun'];
    }

    /** @dataProvider leavings */
    #[DataProvider('leavings')]
    public function testATransactionThatARequestLeavesIsRolledBack(string $path, string $answer): void
    {
        self::assertSame($answer, $this->browser->get($path)->body, $this->server->other);

        $database = new \PDO("sqlite:$this->directory/app.db", options: [\PDO::ATTR_TIMEOUT => 0]);
        Timing::until(static function () use ($database): bool {
            try {
                $database->exec('BEGIN IMMEDIATE');

                return true;
            } catch (\PDOException) {
                return false;
            }
        }, 'nobody else writes');
        self::assertSame([], $database->query("SELECT name FROM sqlite_master WHERE name = 'leavings'")->fetchAll());
        $database->exec('ROLLBACK');
        self::assertSame('first of 3;second of 3;', $this->browser->get('/streamed?n=3')->body);
    }
}
