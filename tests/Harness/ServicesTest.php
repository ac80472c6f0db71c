<?php

declare(strict_types=1);

namespace Weft\Tests\Harness;

use PHPUnit\Framework\TestCase;

final class ServicesTest extends TestCase
{
    private string $folder;

    protected function setUp(): void
    {
        $this->folder = \sys_get_temp_dir() . '/weft-services-' . \bin2hex(\random_bytes(6));
        \mkdir($this->folder, 0o700);
    }

    protected function tearDown(): void
    {
        \exec('rm -rf ' . \escapeshellarg($this->folder));
    }

    /** The data of RabbitMQ belongs to a node of one name. */
    public function testANodeKeepsItsNameWhenItsFolderIsMoved(): void
    {
        $name = $this->node('before');
        self::assertMatchesRegularExpression('/^weft-\d+@localhost$/', $name);

        \rename("{$this->folder}/before", "{$this->folder}/after");

        self::assertSame($name, $this->node('after'));
        self::assertNotSame($name, $this->node('another'));
    }

    private function node(string $folder): string
    {
        return \trim($this->services($folder, 'node'));
    }

    private function services(string $folder, string $command): string
    {
        $script = \dirname(__DIR__, 2) . '/scripts/services';
        \exec('WEFT_VAR=' . \escapeshellarg("{$this->folder}/$folder") . ' ' . \escapeshellarg($script) . " $command 2>&1", $output, $code);
        self::assertSame(0, $code, \implode("\n", $output));

        return \implode("\n", $output);
    }
}
