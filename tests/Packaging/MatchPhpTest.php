<?php

declare(strict_types=1);

namespace Weft\Tests\Packaging;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

/** What `make` does where another PHP has taken the place of the one that the extension was built for. Scripts stand in for PHP and Cargo. */
final class MatchPhpTest extends TestCase
{
    private string $directory;

    protected function setUp(): void
    {
        $this->directory = \sys_get_temp_dir() . '/weft-match-' . \bin2hex(\random_bytes(6));
        \mkdir("{$this->directory}/bin", recursive: true);
        $this->program('cargo', 'echo "$*" >>"$CALLS"');
        $this->program('php-config', 'echo 8.4.27');
        // The first asks for the version, the second loads the extension, whose file says for which PHP it was built.
        $this->program('php', 'case "$*" in *extension=*) f=${3#extension=}; grep -q "8\.4" "$f" ;; *) printf 8.4 ;; esac');
    }

    protected function tearDown(): void
    {
        \exec('rm -rf ' . \escapeshellarg($this->directory));
    }

    /** @dataProvider goals */
    #[DataProvider('goals')]
    public function testAnExtensionForAnotherPhpIsBuiltAgain(string $goal, string $directory, string $profile): void
    {
        $this->extension($directory, '8.2');

        [$code, $output] = $this->make($goal);

        self::assertSame(0, $code, $output);
        self::assertSame(["clean --quiet --locked --profile {$profile} --package ext-php-rs --package weft-ext", 'build'], $this->calls());
    }

    /** @dataProvider goals */
    #[DataProvider('goals')]
    public function testAnExtensionForThisPhpStaysForCargoToJudge(string $goal, string $directory, string $profile): void
    {
        $this->extension($directory, '8.4');

        [$code, $output] = $this->make($goal);

        self::assertSame([0, ''], [$code, $output]);
        self::assertSame(['build'], $this->calls(), $profile);
    }

    public function testTheFirstBuildRemovesNothing(): void
    {
        [$code, $output] = $this->make('build');

        self::assertSame([0, ''], [$code, $output]);
        self::assertSame(['build'], $this->calls());
    }

    /** @return iterable<string, array{string, string, string}> */
    public static function goals(): iterable
    {
        yield 'make build' => ['build', 'release', 'release'];
        yield 'make build-debug' => ['build-debug', 'debug', 'dev'];
    }

    public function testHeadersOfAnotherPhpAreNamed(): void
    {
        $this->program('php-config', 'echo 8.2.31');

        [$code, $output] = $this->make('build');

        self::assertNotSame(0, $code);
        self::assertStringContainsString('match-php: php is PHP 8.4, but php-config has the headers of 8.2.31: install those of 8.4 (php8.4-dev on Debian and Ubuntu)', $output);
        self::assertSame([], $this->calls());
    }

    public function testMissingHeadersAreNamed(): void
    {
        $this->program('php-config', 'exit 127');

        [$code, $output] = $this->make('build-debug');

        self::assertNotSame(0, $code);
        self::assertStringContainsString('match-php: there is no php-config: install the headers of PHP 8.4 (php8.4-dev on Debian and Ubuntu)', $output);
    }

    private function extension(string $directory, string $php): void
    {
        \mkdir("{$this->directory}/target/{$directory}", recursive: true);
        \file_put_contents("{$this->directory}/target/{$directory}/libweft.so", "for PHP {$php}");
    }

    /** @return array{int, string} */
    private function make(string $goal): array
    {
        $environment = [
            'PATH' => "{$this->directory}/bin:" . \getenv('PATH'),
            // The Makefile puts the programs of Cargo first.
            'CARGO_HOME' => $this->directory,
            'CARGO_TARGET_DIR' => "{$this->directory}/target",
            'CALLS' => "{$this->directory}/calls",
        ];
        $process = \proc_open(['make', '--silent', '-C', \dirname(__DIR__, 2), $goal], [['file', '/dev/null', 'r'], ['pipe', 'w'], ['redirect', 1]], $pipes, null, $environment);
        self::assertIsResource($process);
        $output = (string) \stream_get_contents($pipes[1]);

        return [\proc_close($process), $output];
    }

    /** @return list<string> what Cargo was asked for; of a build the first word, because its options are not the subject */
    private function calls(): array
    {
        $calls = \is_file("{$this->directory}/calls") ? (array) \file("{$this->directory}/calls", \FILE_IGNORE_NEW_LINES) : [];

        return \array_map(static fn(string $call): string => \str_starts_with($call, 'build ') ? 'build' : $call, \array_values($calls));
    }

    private function program(string $name, string $script): void
    {
        \file_put_contents("{$this->directory}/bin/{$name}", "#!/bin/sh\n{$script}\n");
        \chmod("{$this->directory}/bin/{$name}", 0o755);
    }
}
