<?php

declare(strict_types=1);

namespace Weft\Tests\Harness\Fixtures;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Sql\Database;
use Weft\Tests\Harness\Servers;

/** Its first test kills MariaDB and fails before it has started it again. */
final class ServerKilled extends TestCase
{
    public function testOneThatKillsTheServer(): void
    {
        $environment = (new Servers((string) \getenv('WEFT_TEST_SERVERS')))->environment();
        \posix_kill((int) $environment['WEFT_MYSQL_PID'], \SIGKILL);
        for ($tries = 0; (new Servers((string) \getenv('WEFT_TEST_SERVERS')))->down() === [] && $tries < 1_000; $tries++) {
            \usleep(10_000);
        }
        self::fail('before the server was started again');
    }

    /** @dataProvider numbers */
    #[DataProvider('numbers')]
    public function testOneThatNeedsTheServer(int $number): void
    {
        $db = Database::connect((string) \getenv('WEFT_MYSQL_DSN'));
        self::assertSame($number, $db->execute('SELECT ?', [$number])->value());
        $db->close();
    }

    public static function numbers(): iterable
    {
        yield [1];
        yield [2];
        yield [3];
    }
}
