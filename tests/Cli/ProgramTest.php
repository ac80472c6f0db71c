<?php

declare(strict_types=1);

namespace Weft\Tests\Cli;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\Console\Command\Command;
use Weft\Cli\Program;
use Weft\Tests\Extension;
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

    /** Unreleased changes have a version of their own, between that of the last release and that of the next one. */
    public function testTheVersionIsThatOfTheChangelog(): void
    {
        \preg_match_all('/^## \[(.+)\]/m', (string) \file_get_contents(\dirname(__DIR__, 2) . '/CHANGELOG.md'), $sections);
        [$newest, $before] = $sections[1];

        if ($newest === 'Unreleased') {
            self::assertTrue(\version_compare(Version::LIBRARY, $before, '>'), Version::LIBRARY . " comes after $before");
            self::assertMatchesRegularExpression('/^\d+\.\d+\.\d+-(dev|alpha\d+|beta\d+|rc\d+)$/', Version::LIBRARY);
        } else {
            self::assertSame($newest, Version::LIBRARY);
        }
    }

    /** Composer installs no development version unless a project asks for it: what is shown is the release to come. */
    public function testTheDocumentationRequiresThisRelease(): void
    {
        $root = \dirname(__DIR__, 2);
        $release = \explode('-', Version::LIBRARY)[0];
        $named = [];
        foreach ([...\glob("$root/docs/*/*.md") ?: [], ...\glob("$root/examples/*/composer.json") ?: []] as $file) {
            \preg_match_all('{"weft/\w+": "(\^?[\d.]+)"|\bweft[-_:](\d+\.\d+\.\d+)\b}', (string) \file_get_contents($file), $found, \PREG_SET_ORDER);
            foreach ($found as $match) {
                $named[\end($match)][] = \basename($file);
            }
        }

        \ksort($named);
        self::assertSame([$release, '^' . \implode('.', \array_slice(\explode('.', $release), 0, 2))], \array_keys($named), (string) \json_encode($named));
    }

    /** @dataProvider firstCalls */
    #[DataProvider('firstCalls')]
    public function testAProgramWithoutTheExtensionIsToldWhatIsMissing(string $program): void
    {
        $errors = self::failureOf(['-n'], $program);

        self::assertStringContainsString('Uncaught Error: Weft needs the PHP extension weft, which is not loaded', $errors);
    }

    public static function firstCalls(): iterable
    {
        yield 'a database' => ['Weft\Sql\Database::connect("sqlite::memory:");'];
        yield 'a server' => ['(new Weft\Http\Server(new Weft\Http\Router()))->run();'];
        yield 'run()' => ['Weft\run(static fn() => 1);'];
        yield 'a delay outside of run()' => ['Weft\delay(0.1);'];
        yield 'a bus' => ['Weft\Bus\Bus::connect("memory:");'];
        yield 'an application' => ['new Weft\App();'];
        yield 'a simulation' => ['Weft\Testing\Simulation::run(static fn() => null);'];
    }

    public function testAProgramWithAnExtensionOfAnotherVersionIsToldBoth(): void
    {
        $library = 'namespace Weft { final class Version { const LIBRARY = "9.8.7", INTERFACE_HASH = "00000000"; static function extension() { return phpversion("weft"); } } }';

        $errors = self::failureOf(['-d', 'extension=' . Extension::library()], 'Weft\run(static fn() => 1);', $library);

        self::assertStringContainsString('Uncaught Error: Weft library 9.8.7 does not match the loaded extension ' . Version::LIBRARY . '. Run `make ', $errors);
        self::assertStringContainsString('. Details: ' . \dirname(__DIR__, 2) . '/bin/weft doctor', $errors);
    }

    /** Two builds between releases have the same version number. */
    public function testAProgramWithAnExtensionBuiltFromOtherSourcesIsToldWhatToRun(): void
    {
        $library = 'namespace Weft { final class Version { const LIBRARY = "' . Version::LIBRARY . '", INTERFACE_HASH = "00000000"; static function extension() { return phpversion("weft"); } static function extensionInterfaceHash() { return \\Weft\\Native\\interfaceHash(); } } }';

        $errors = self::failureOf(['-d', 'extension=' . Extension::library()], 'Weft\run(static fn() => 1);', $library);

        self::assertStringContainsString('Uncaught Error: Weft library ' . Version::LIBRARY . ' with the interface hash 00000000 does not match the loaded extension with ' . Version::INTERFACE_HASH . '. They were built from different sources', $errors);
        self::assertMatchesRegularExpression('{Run `make build(-debug)?` in /.*\. Details: \S+/bin/weft doctor}', $errors);
    }

    /**
     * @param list<string> $php
     * @return string what it wrote
     */
    private static function failureOf(array $php, string $program, string $before = ''): string
    {
        $command = [\PHP_BINARY, ...$php, '-d', 'display_errors=1', '-r', "{$before} namespace { require \$argv[1]; {$program} }", \dirname(__DIR__, 2) . '/autoload.php'];
        \exec(\implode(' ', \array_map('escapeshellarg', $command)) . ' 2>&1', $output, $code);
        self::assertSame(255, $code, \implode("\n", $output));

        return \implode("\n", $output);
    }

    public function testListNamesTheCommands(): void
    {
        self::assertMatchesRegularExpression('/^  doctor +Check PHP/m', Weft::run(['list'])->output);
    }

    public function testHelpWithoutACommandListsTheCommands(): void
    {
        $list = Weft::run(['list'])->output;

        foreach (['--help', '-h'] as $help) {
            self::assertSame($list, Weft::run([$help])->output);
        }
        self::assertStringContainsString('--workers', Weft::run(['run', '--help'])->output);
    }

    /** Symfony 7 reads nothing else. */
    public function testEachCommandHasItsNameByAttribute(): void
    {
        $commands = \array_filter((new Program())->all(), static fn(Command $command): bool => \str_starts_with($command::class, 'Weft\\'));

        self::assertGreaterThan(20, \count($commands));
        foreach ($commands as $command) {
            $attribute = ((new \ReflectionObject($command))->getAttributes(AsCommand::class)[0] ?? null)?->newInstance();
            self::assertSame([$command->getName(), $command->getDescription()], [$attribute?->name, $attribute?->description], $command::class);
            self::assertNotSame('', $attribute->description);
        }
    }

    public function testAnUnknownCommandIsRefused(): void
    {
        $weft = Weft::run(['frobnicate']);

        self::assertSame(2, $weft->exitCode);
        self::assertStringContainsString('Command "frobnicate" is not defined.', $weft->errors);
    }

    /**
     * @dataProvider wrongCommandLines
     *
     * @param list<string> $arguments
     */
    #[DataProvider('wrongCommandLines')]
    public function testAWrongCommandLineEndsWithTwo(array $arguments, string $complaint): void
    {
        $weft = Weft::run($arguments);

        self::assertSame(2, $weft->exitCode, $weft->errors);
        // The console breaks lines.
        self::assertStringContainsString($complaint, (string) \preg_replace('/\s+/', ' ', $weft->errors));
        self::assertStringNotContainsString('Stack trace', $weft->errors);
    }

    /** @return iterable<string, array{list<string>, string}> */
    public static function wrongCommandLines(): iterable
    {
        yield 'an unknown option' => [['run', __FILE__, '--nosuch'], 'The "--nosuch" option does not exist.'];
        yield 'a missing argument' => [['run'], 'Not enough arguments (missing: "application").'];
        yield 'a missing value' => [['run', __FILE__, '--workers'], 'The "--workers" option requires a value.'];
        yield 'too many arguments' => [['doctor', 'now'], 'No arguments expected'];
        yield 'a number out of its bounds' => [['state:check', __FILE__, '--repeat=1'], '--repeat must be at least 3'];
    }

    public function testASourceCheckoutFindsItsOwnExtension(): void
    {
        self::assertStringContainsString('(extension 0.', Weft::run(['--version'], php: [])->output);
    }
}
