<?php

declare(strict_types=1);

namespace Weft\Tests\Sql;

use PHPUnit\Framework\TestCase;
use Weft\Sql\AuthenticationFailed;
use Weft\Sql\Database;
use Weft\Sql\SyntaxError;
use Weft\Tests\Sql\Support\Witness;

/** The log-in of MySQL 8, which MariaDB does not have, against PHP's hashes and OpenSSL's RSA. */
final class CachingSha2Test extends TestCase
{
    use Witness;

    /** @return iterable<string, array{string, string}> */
    public static function ways(): iterable
    {
        yield 'the server knows the hash' => ['fast', 'secret'];
        yield 'RSA' => ['full', 'secret'];
        yield 'RSA with a password longer than the scramble' => ['full', 'Zoë, a password of more than twenty bytes'];
        yield 'TLS' => ['tls', 'secret'];
    }

    /** @dataProvider ways */
    public function testTheRightPasswordIsLetInAndAnotherIsNot(string $way, string $password): void
    {
        $certificate = (string) \tempnam(\sys_get_temp_dir(), 'weft');
        $process = \proc_open([\PHP_BINARY, '-n', __DIR__ . '/Support/caching-sha2.php', $password, $way, $certificate], [['pipe', 'r'], ['pipe', 'w']], $pipes);
        self::assertIsResource($process);
        $port = \trim((string) \fgets($pipes[1]));
        $sslmode = $way === 'tls' ? 'require' : 'disable';
        $connect = static fn (string $password): Database => Database::connect('mysql://app:' . \rawurlencode($password) . "@127.0.0.1:{$port}/app?sslmode={$sslmode}&connect_timeout=5");
        try {
            $error = self::thrown(SyntaxError::class, static fn () => $connect($password)->execute('SELECT 1'));
            self::assertStringContainsString("let in by {$way}", $error->getMessage());

            $error = self::thrown(AuthenticationFailed::class, static fn () => $connect('hunter2')->execute('SELECT 1'));
            self::assertStringNotContainsString('hunter2', (string) $error);
        } finally {
            \unlink($certificate);
            \proc_terminate($process);
            \proc_close($process);
        }
    }
}
