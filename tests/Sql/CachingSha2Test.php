<?php

declare(strict_types=1);

namespace Weft\Tests\Sql;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Sql\AuthenticationException;
use Weft\Sql\Database;
use Weft\Sql\SyntaxErrorException;
use Weft\Tests\Sql\Support\Witness;

/** The log-in of MySQL 8, which MariaDB does not have, against PHP's hashes and OpenSSL's RSA. */
final class CachingSha2Test extends TestCase
{
    use Witness;

    /** @var resource|null */
    private $server = null;
    private string $port = '';
    /** Of the server's keys, which the first server makes: that takes longer than all tests together. */
    private static string $directory = '';

    public static function setUpBeforeClass(): void
    {
        self::$directory = \sys_get_temp_dir() . '/weft-login-' . \bin2hex(\random_bytes(6));
        \mkdir(self::$directory);
    }

    public static function tearDownAfterClass(): void
    {
        \array_map(\unlink(...), (array) \glob(self::$directory . '/*'));
        \rmdir(self::$directory);
    }

    protected function tearDown(): void
    {
        if ($this->server !== null) {
            \proc_terminate($this->server);
            \proc_close($this->server);
            $this->server = null;
        }
    }

    private function serve(string $way, string $password = 'secret'): void
    {
        $process = \proc_open([\PHP_BINARY, '-n', __DIR__ . '/Support/caching-sha2.php', $password, $way, self::$directory], [['pipe', 'r'], ['pipe', 'w'], ['file', '/dev/null', 'w']], $pipes);
        self::assertIsResource($process);
        $this->server = $process;
        $this->port = \trim((string) \fgets($pipes[1]));
    }

    private function connect(string $options, string $password = 'secret'): Database
    {
        $options = \strtr($options, ['KEY' => self::$directory . '/key.pem', 'CERTIFICATE' => self::$directory . '/certificate.pem']);

        return Database::connect('mysql://app:' . \rawurlencode($password) . "@127.0.0.1:{$this->port}/app?connect_timeout=5&{$options}");
    }

    /** @return iterable<string, array{0: string, 1: string, 2?: string}> */
    public static function ways(): iterable
    {
        yield 'the server knows the hash' => ['fast', 'sslmode=disable'];
        yield 'RSA with the key of the DSN' => ['full', 'sslmode=disable&server_public_key=KEY'];
        yield 'RSA with a password longer than the scramble' => ['full', 'sslmode=disable&server_public_key=KEY', 'Zoë, a password of more than twenty bytes'];
        yield 'RSA with the key that the server sends, where that is allowed' => ['full', 'allow_unverified_server=on'];
        yield 'TLS that is not verified, where that is allowed' => ['tls', 'sslmode=require&allow_unverified_server=on'];
    }

    /** @dataProvider ways */
    #[DataProvider('ways')]
    public function testTheRightPasswordIsLetInAndAnotherIsNot(string $way, string $options, string $password = 'secret'): void
    {
        $this->serve($way, $password);
        $error = self::thrown(SyntaxErrorException::class, fn () => $this->connect($options, $password)->execute('SELECT 1'));
        self::assertStringContainsString("let in by {$way}", $error->getMessage());

        $error = self::thrown(AuthenticationException::class, fn () => $this->connect($options, 'hunter2')->execute('SELECT 1'));
        self::assertStringNotContainsString('hunter2', (string) $error);
    }

    /** @return iterable<string, array{string, string, string}> */
    public static function exposures(): iterable
    {
        yield 'a key that anybody may have sent' => ['full', '', 'the connection has no TLS. Use sslmode=verify-full, a Unix socket, server_public_key=FILE'];
        yield 'a key, TLS stripped' => ['full', 'sslmode=prefer', 'allow_unverified_server=on'];
        yield 'the password over TLS of anybody' => ['tls', 'sslmode=require', "the server's certificate is not verified. Use sslmode=verify-full"];
        yield 'the same with the key of a connection without TLS' => ['tls', 'sslmode=require&server_public_key=KEY', 'sslmode=disable with server_public_key=FILE'];
        yield 'any certificate of an authority of the system' => ['tls', 'sslmode=prefer', 'certificate is not verified'];
        yield 'sha256_password' => ['sha256', '', '"sha256_password": that sends it the password'];
        yield 'the password itself' => ['clear', '', '"mysql_clear_password": that sends it the password, but the connection has no TLS'];
        yield 'the password itself, whatever is allowed' => ['clear', 'allow_unverified_server=on&server_public_key=KEY', 'the connection has no TLS. Use sslmode=verify-full or a Unix socket'];
        yield 'a key that is none' => ['full', 'server_public_key=CERTIFICATE', 'it contains no public key in PEM'];
        yield 'a key that is not there' => ['full', 'server_public_key=/nowhere.pem', 'server_public_key /nowhere.pem: No such file'];
    }

    /** @dataProvider exposures */
    #[DataProvider('exposures')]
    public function testAServerThatMayBeAnybodysDoesNotGetThePassword(string $way, string $options, string $cause): void
    {
        $this->serve($way);
        $error = self::thrown(AuthenticationException::class, fn () => $this->connect($options)->execute('SELECT 1'));

        self::assertStringContainsString($cause, $error->getMessage());
        self::assertStringNotContainsString('given', $error->getMessage());
        self::assertStringNotContainsString('secret', (string) $error);
    }
}
