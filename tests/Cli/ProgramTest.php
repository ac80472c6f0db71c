<?php

declare(strict_types=1);

namespace Weft\Tests\Cli;

use PHPUnit\Framework\TestCase;
use Weft\Version;

final class ProgramTest extends TestCase
{
    public function testTheVersionNamesLibraryExtensionAndPhp(): void
    {
        $weft = Weft::run(['--version']);

        self::assertSame(\sprintf("Weft %s (extension %1\$s, PHP %s)\n", Version::LIBRARY, \PHP_VERSION), $weft->output);
        self::assertSame(0, $weft->exitCode);
    }

    public function testLibraryExtensionAndWorkspaceHaveOneVersion(): void
    {
        $cargo = (string) \file_get_contents(\dirname(__DIR__, 2) . '/Cargo.toml');

        self::assertSame(Version::LIBRARY, Version::extension());
        self::assertStringContainsString('version = "' . Version::LIBRARY . '"', $cargo);
    }

    public function testAProgramWithoutTheExtensionIsToldWhatIsMissing(): void
    {
        $program = 'require $argv[1]; Weft\Sql\Database::connect("sqlite::memory:");';
        $command = [\PHP_BINARY, '-n', '-d', 'display_errors=1', '-r', $program, \dirname(__DIR__, 2) . '/autoload.php'];
        \exec(\implode(' ', \array_map('escapeshellarg', $command)) . ' 2>&1', $output, $code);

        self::assertSame(255, $code);
        self::assertStringContainsString('is a class of the PHP extension weft, which is not loaded', \implode("\n", $output));
    }

    public function testListNamesTheCommands(): void
    {
        self::assertMatchesRegularExpression('/^  doctor +Check PHP/m', Weft::run(['list'])->output);
    }

    public function testAnUnknownCommandIsRefused(): void
    {
        $weft = Weft::run(['frobnicate']);

        self::assertSame(1, $weft->exitCode);
        self::assertStringContainsString('Command "frobnicate" is not defined.', $weft->errors);
    }

    public function testASourceCheckoutFindsItsOwnExtension(): void
    {
        self::assertStringContainsString('(extension 0.', Weft::run(['--version'], php: [])->output);
    }
}
