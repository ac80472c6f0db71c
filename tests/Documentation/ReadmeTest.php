<?php

declare(strict_types=1);

namespace Weft\Tests\Documentation;

use PHPUnit\Framework\TestCase;
use Weft\Bench\HttpAnswer;
use Weft\Bench\Port;
use Weft\Bench\Server;
use Weft\Tests\Cli\Supervised;
use Weft\Tests\Cli\Weft;
use Weft\Tests\Extension;
use Weft\Tests\Timing;

require_once __DIR__ . '/../../bench/autoload.php';

/** Does what README.md says, except for the build. */
final class ReadmeTest extends TestCase
{
    private string $directory;

    protected function setUp(): void
    {
        $this->directory = \sys_get_temp_dir() . '/weft-readme-' . \bin2hex(\random_bytes(6));
        \mkdir($this->directory);
        \symlink(self::root(), "{$this->directory}/weft");
    }

    protected function tearDown(): void
    {
        \exec('rm -rf ' . \escapeshellarg($this->directory));
    }

    public function testTheFirstStepsAnswerWhatThePageSays(): void
    {
        $page = self::page();
        self::assertStringContainsString("\nbin/weft new ../hello && cd ../hello ", $page);
        self::assertStringContainsString("\n../weft/bin/weft run app.php --watch ", $page);
        \preg_match_all('/^(curl .*localhost:8080.*?) +# (.+)$/m', $page, $calls, \PREG_SET_ORDER);
        self::assertCount(3, $calls);

        self::assertSame(0, Weft::run(['new', "{$this->directory}/hello"])->exitCode);
        $address = '127.0.0.1:' . Port::free();
        $application = new Supervised("{$this->directory}/hello/app.php", ['--watch'], ['LISTEN' => $address, 'DATABASE_URL' => '', 'BROKER_URL' => '']);
        $application->wait('is ready');
        foreach ($calls as [, $command, $answer]) {
            $call = \str_replace(['curl ', 'localhost:8080', '\n'], ['curl -s --max-time 60 ', "http://{$address}", ''], $command);
            // A reader types more slowly than a message is handled.
            Timing::until(static fn(): bool => \strtr((string) \shell_exec($call), ["\n" => '']) === $answer, "{$command} to answer {$answer}");
        }
        $application->signal(\SIGTERM);
        self::assertSame(0, $application->end());
    }

    public function testTheApplicationOfThePageStoresEachCustomerOnce(): void
    {
        self::assertSame(1, \preg_match('/^```php\n(.*?)^```$/ms', self::page(), $program));
        $port = Port::free();
        \mkdir("{$this->directory}/app");
        \file_put_contents("{$this->directory}/app/app.php", \str_replace(['8080', 'sqlite:customers.db'], [(string) $port, "sqlite:{$this->directory}/customers.db"], $program[1]));
        $log = "{$this->directory}/log";
        $application = Server::start([\PHP_BINARY, '-d', 'extension=' . Extension::library(), "{$this->directory}/app/app.php"], [], $log, $port);
        try {
            $post = static fn(string $body): HttpAnswer => HttpAnswer::of("http://127.0.0.1:{$port}/customers", ['method' => 'POST', 'header' => 'content-type: application/json', 'content' => $body]);
            self::assertSame(202, $post('{"name": "Ada", "email": "ada@example.org"}')->status);
            self::assertSame(422, $post('{"name": "Ada"}')->status);
            Timing::until(static fn(): bool => \str_contains((string) \file_get_contents($log), "A mail to ada@example.org\n"), 'the mail');
        } finally {
            $application->stop();
        }

        $customers = (new \PDO("sqlite:{$this->directory}/customers.db"))->query('SELECT email, name FROM customers')->fetchAll(\PDO::FETCH_NUM);
        self::assertSame([['ada@example.org', 'Ada']], $customers);
    }

    private static function page(): string
    {
        return (string) \file_get_contents(self::root() . '/README.md');
    }

    private static function root(): string
    {
        return \dirname(__DIR__, 2);
    }
}
