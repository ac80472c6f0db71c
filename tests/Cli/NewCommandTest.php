<?php

declare(strict_types=1);

namespace Weft\Tests\Cli;

use PHPUnit\Framework\TestCase;
use Weft\Bench\HttpAnswer;
use Weft\Bench\Port;
use Weft\Tests\Timing;

require_once __DIR__ . '/../../bench/autoload.php';

/** `weft new`: what it writes runs at once. */
final class NewCommandTest extends TestCase
{
    private string $directory;

    protected function setUp(): void
    {
        $this->directory = \sys_get_temp_dir() . '/weft-new-' . \bin2hex(\random_bytes(6));
    }

    protected function tearDown(): void
    {
        \exec('rm -rf ' . \escapeshellarg($this->directory));
    }

    public function testTheApplicationServesAndItsHandlerRuns(): void
    {
        $written = Weft::run(['new', $this->directory]);
        self::assertSame([0, ''], [$written->exitCode, $written->errors]);
        self::assertStringContainsString("  app.php\n", $written->output);
        self::assertMatchesRegularExpression('{^/\S+/bin/weft run app\.php --watch$}m', $written->output);

        $address = '127.0.0.1:' . Port::free();
        $application = new Supervised("{$this->directory}/app.php", [], ['LISTEN' => $address, 'DATABASE_URL' => '', 'BROKER_URL' => '']);
        $application->wait('is ready');
        $post = static fn(string $body): HttpAnswer => HttpAnswer::of("http://$address/greetings", ['method' => 'POST', 'header' => 'content-type: application/json', 'content' => $body]);
        self::assertSame('HTTP/1.1 202 Accepted', $post('{"name": "Ada"}')->headers[0] ?? null);
        Timing::until(
            static fn(): bool => \file_get_contents("http://$address/greetings") === '["Hello, Ada!"]',
            'the greeting of Ada',
        );
        self::assertSame(422, $post('{}')->status);
        $application->signal(\SIGTERM);
        self::assertSame(0, $application->end());
    }

    public function testTheTestOfTheApplicationPasses(): void
    {
        Weft::run(['new', $this->directory]);

        $phpunit = \is_file(\dirname(__DIR__, 2) . '/vendor/bin/phpunit') ? \dirname(__DIR__, 2) . '/vendor/bin/phpunit' : \trim((string) \shell_exec('command -v phpunit'));
        \exec(\sprintf('cd %s && %s -d extension=%s %s 2>&1', \escapeshellarg($this->directory), \PHP_BINARY, \escapeshellarg(Weft::library()), \escapeshellarg($phpunit)), $output, $code);

        self::assertSame(0, $code, \implode("\n", $output));
        self::assertStringContainsString('OK (1 test', \implode("\n", $output));
    }

    public function testADirectoryThatIsNotEmptyIsLeftAlone(): void
    {
        \mkdir($this->directory);
        \file_put_contents("{$this->directory}/app.php", 'mine');

        $refused = Weft::run(['new', $this->directory]);

        self::assertSame("weft: {$this->directory} exists and is not an empty directory: nothing was written\nHelp: weft explain cli-new-application", \trim($refused->output . $refused->errors));
        self::assertSame(1, $refused->exitCode);
        self::assertSame('mine', \file_get_contents("{$this->directory}/app.php"));
        self::assertCount(3, (array) \scandir($this->directory));
    }

    public function testADirectoryThatCannotBeMadeIsNamed(): void
    {
        $refused = Weft::run(['new', '/proc/weft-app']);

        self::assertStringContainsString('Cannot create the directory /proc/weft-app', $refused->output . $refused->errors);
        self::assertSame(1, $refused->exitCode);
    }
}
