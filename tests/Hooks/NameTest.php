<?php

declare(strict_types=1);

namespace Weft\Tests\Hooks;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Tests\Extension;
use Weft\Tests\Runtime\Subprocess;

/** Look-ups of names, asked of a server that answers only once ten questions have arrived: it counts that they were asked at once. */
final class NameTest extends TestCase
{
    private const ADDRESS = '127.0.0.153';

    private static string $directory;
    /** @var resource|null */
    private static $server;

    public static function setUpBeforeClass(): void
    {
        if (\posix_geteuid() !== 0) {
            self::markTestSkipped('Another resolv.conf can be mounted by root only');
        }
        self::$directory = \sys_get_temp_dir() . '/weft-names-' . \bin2hex(\random_bytes(4));
        \mkdir(self::$directory);
        \file_put_contents(self::$directory . '/resolv.conf', 'nameserver ' . self::ADDRESS . "\noptions timeout:30 attempts:1\n");
        \file_put_contents(self::$directory . '/nsswitch.conf', "hosts: files dns\n");
        self::$server = \proc_open([\PHP_BINARY, '-n', __DIR__ . '/Support/name-server.php', self::ADDRESS], [1 => ['pipe', 'w']], $pipes) ?: null;
        if (self::$server === null || \fgets($pipes[1]) !== "ready\n") {
            self::markTestSkipped('A name server cannot listen on ' . self::ADDRESS . ':53 here');
        }
    }

    public static function tearDownAfterClass(): void
    {
        if (isset(self::$server)) {
            \proc_terminate(self::$server);
            \proc_close(self::$server);
        }
        if (isset(self::$directory)) {
            \exec('rm -rf ' . \escapeshellarg(self::$directory));
        }
    }

    /** @dataProvider calls */
    #[DataProvider('calls')]
    public function testTenLookUpsAreMadeAtOnce(string $call, string $expected): void
    {
        $output = $this->withNameServer("echo json_encode(array_unique(timeout(60.0, fn () => all(array_map(fn (\$n) => fn () => $call, range(1, 10))))));");

        self::assertSame($expected, $output);
    }

    public static function calls(): iterable
    {
        yield 'gethostbyname()' => ['gethostbyname("host$n.test")', '["192.0.2.1"]'];
        yield 'gethostbynamel()' => ['implode(",", gethostbynamel("host$n.test"))', '["192.0.2.1"]'];
        yield 'dns_get_record()' => ['dns_get_record("host$n.test", DNS_A)[0]["ip"]', '["192.0.2.1"]'];
        yield 'checkdnsrr()' => ['(int) checkdnsrr("host$n.test", "A")', '[1]'];
        yield 'a stream' => ['(string) @stream_socket_client("udp://host$n.test:9", $code, $message) !== ""', '[true]'];
    }

    public function testALookUpIsCancelled(): void
    {
        $output = $this->withNameServer(<<<'PHP'
            try {
                timeout(0.1, fn () => gethostbyname('one.test'));
            } catch (Weft\Runtime\TimeoutException $e) {
                echo preg_match('{waiting for gethostbyname\(\)}', $e->getMessage());
            }
            PHP);

        self::assertSame('1', $output);
    }

    private function withNameServer(string $code): string
    {
        $file = self::$directory . '/program.php';
        \file_put_contents($file, "<?php require '" . \dirname(__DIR__, 2) . "/autoload.php'; use function Weft\\{all, run, timeout}; run(function () { $code });");
        $mount = 'mount --bind ' . self::$directory . '/resolv.conf /etc/resolv.conf && mount --bind ' . self::$directory . '/nsswitch.conf /etc/nsswitch.conf';
        $command = \implode(' ', \array_map(\escapeshellarg(...), [\PHP_BINARY, '-n', '-d', 'extension=' . Extension::library(), $file]));
        \exec('timeout 120 unshare --mount sh -c ' . \escapeshellarg("$mount && exec $command") . ' 2>&1', $output, $status);
        $output = \implode("\n", $output);
        if ($status !== 0 && \preg_match('{(unshare|mount): }', $output) === 1) {
            self::markTestSkipped("No mount name space can be made here: $output");
        }

        return $output;
    }
}
