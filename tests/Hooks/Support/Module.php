<?php

declare(strict_types=1);

namespace Weft\Tests\Hooks\Support;

use PHPUnit\Framework\Assert;
use Weft\Tests\Http\Directory;

/** An extension of PHP that is compiled for a test, from a file of `tests/Hooks/Fixtures`. */
final class Module
{
    private function __construct(
        private readonly Directory $directory,
        public readonly string $file,
    ) {
    }

    /** Skips the test where there is no compiler, or no headers of PHP. */
    public static function compile(string $name): self
    {
        $includes = \trim((string) \shell_exec('php-config --includes 2>/dev/null'));
        if ($includes === '' || \shell_exec('command -v cc') === null) {
            Assert::markTestSkipped('php-config or a C compiler is missing');
        }
        $directory = new Directory();
        $module = new self($directory, "$directory->path/$name.so");
        \exec("cc -shared -fPIC $includes -o $module->file " . \dirname(__DIR__) . "/Fixtures/$name.c 2>&1", $output, $code);
        if ($code !== 0) {
            $module->remove();
        }
        Assert::assertSame(0, $code, \implode("\n", $output));

        return $module;
    }

    public function remove(): void
    {
        $this->directory->remove();
    }
}
