<?php

declare(strict_types=1);

namespace Weft\Tests\Grpc;

use PHPUnit\Framework\TestCase;

/** Does what the first page of docs/reference/grpc.md says, in an empty directory. */
final class DocumentTest extends TestCase
{
    private const ROOT = __DIR__ . '/../..';
    private string $directory;

    protected function setUp(): void
    {
        $this->directory = sys_get_temp_dir() . '/weft-docs-grpc-' . bin2hex(random_bytes(6));
        mkdir("{$this->directory}/api", recursive: true);
        mkdir("{$this->directory}/vendor");
        mkdir("{$this->directory}/src");
    }

    protected function tearDown(): void
    {
        exec('rm -rf ' . escapeshellarg($this->directory));
    }

    public function testANewcomerGetsAServerThatStreamsAndAClient(): void
    {
        $page = (string) file_get_contents(self::ROOT . '/docs/reference/grpc.md');
        preg_match_all('/^```(proto|php)\n(.*?)^```$/ms', $page, $blocks);
        [$proto, $service, $server, $client] = $blocks[2];
        // What Composer would write.
        file_put_contents("{$this->directory}/vendor/autoload.php", '<?php require_once ' . var_export(realpath(self::ROOT . '/autoload.php'), true) . ';
            spl_autoload_register(static function (string $class): void {
                $file = __DIR__ . "/../src/" . strtr(substr($class, 4), "\\\\", "/") . ".php";
                if (str_starts_with($class, "App\\\\") && is_file($file)) { require $file; }
            });');
        file_put_contents("{$this->directory}/api/users.proto", $proto);
        file_put_contents("{$this->directory}/src/UserService.php", "<?php\n\ndeclare(strict_types=1);\n\n$service");
        preg_match('/`weft (proto:generate .*?)`/', $page, $command);
        [$code, $output] = $this->php(realpath(self::ROOT . '/bin/weft') . " $command[1]");
        self::assertSame([0, "5 classes in src/Api\n"], [$code, $output]);

        $listening = str_replace(['127.0.0.1:9090', '->run()'], ['127.0.0.1:0', '->run(static function (array $addresses): void { echo $addresses[0], "\n"; })'], $server);
        file_put_contents("{$this->directory}/server.php", '<?php chdir(__DIR__); ' . $listening);
        $running = GrpcProcess::launch(["{$this->directory}/server.php"]);
        try {
            file_put_contents("{$this->directory}/client.php", '<?php ' . str_replace('127.0.0.1:9090', $running->address, $client));
            $said = $this->php('client.php');
            [$exit, $reply] = Tool::run('grpcurl', ['-plaintext', '-d', '{"id": 7}', $running->address, 'api.Users/Get']);
        } finally {
            $running->stop();
        }

        self::assertSame([0, "Ada\nGrace\nNotFound: no user 9\n"], $said);
        self::assertSame([0, ['id' => '7', 'name' => 'Ada']], [$exit, json_decode($reply, true)]);
    }

    /** @return array{int, string} exit code and output */
    private function php(string $arguments): array
    {
        $extension = getenv('WEFT_EXTENSION') ?: self::ROOT . '/target/debug/libweft.so';
        exec('cd ' . escapeshellarg($this->directory) . ' && ' . escapeshellarg(PHP_BINARY) . ' -d ' . escapeshellarg('extension=' . realpath($extension)) . " $arguments 2>&1", $lines, $code);

        return [$code, implode("\n", [...$lines, ''])];
    }
}
