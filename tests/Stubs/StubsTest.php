<?php

declare(strict_types=1);

namespace Weft\Tests\Stubs;

use PHPUnit\Framework\TestCase;
use Weft\Tests\Execution;
use Weft\Version;

/** The files in stubs/ are what an editor knows of the extension: they must say the truth about it, all of it. */
final class StubsTest extends TestCase
{
    private const DEBUG_BUILDS_ONLY = 'Weft\Native\panic()';

    /** @var array<string, array{list<string>, string, bool}> */
    private static array $extension;
    /** @var array<string, array{list<string>, string, bool}> */
    private static array $stubs;

    public static function setUpBeforeClass(): void
    {
        self::$extension = Signatures::ofExtension('weft');
        self::$stubs = self::signaturesOfStubs();
    }

    public function testEverythingTheExtensionOffersHasAStub(): void
    {
        self::assertSame([], array_values(array_diff(array_keys(self::$extension), array_keys(self::$stubs))));
    }

    public function testEveryStubIsOfferedByTheExtension(): void
    {
        $missing = array_diff(array_keys(self::$stubs), array_keys(self::$extension), [self::DEBUG_BUILDS_ONLY]);

        self::assertSame([], array_values($missing));
    }

    public function testParametersHaveTheSameNamesAndTypesInTheSameOrder(): void
    {
        $common = array_intersect_key(self::$stubs, self::$extension);
        self::assertNotSame([], $common);
        foreach ($common as $name => [$parameters, , $static]) {
            [$expected, , $isStatic] = self::$extension[$name];
            self::assertCount(\count($expected), $parameters, $name);
            foreach ($parameters as $i => $parameter) {
                self::assertTrue(self::fits($expected[$i], $parameter), "$name has the parameter $expected[$i], its stub says $parameter");
            }
            self::assertSame($isStatic, $static, "$name is static");
        }
    }

    public function testReturnTypesAreTheSame(): void
    {
        foreach (array_intersect_key(self::$stubs, self::$extension) as $name => [, $type]) {
            if (str_contains($name, '(')) {
                // The extension says `mixed` of everything that is not a scalar or an object of its own.
                self::assertContains(self::$extension[$name][1], [$type, 'mixed'], "$name returns, its stub says $type");
            }
        }
    }

    public function testTheInterfaceHashOfTheLibraryIsTheOneOfTheStubs(): void
    {
        $stubs = implode('', array_map('file_get_contents', glob(\dirname(__DIR__, 2) . '/stubs/*.php') ?: []));

        self::assertSame(hash('fnv1a32', $stubs), Version::INTERFACE_HASH, 'the stubs have changed: write the first value into Weft\Version::INTERFACE_HASH');
        self::assertSame(Version::INTERFACE_HASH, Version::extensionInterfaceHash(), 'the extension was built with other stubs');
    }

    private static function fits(string $real, string $stub): bool
    {
        return $real === $stub || $real === preg_replace('/^\S+ /', 'mixed ', $stub);
    }

    /** @return array<string, array{list<string>, string, bool}> from a process of its own: here the names are taken */
    private static function signaturesOfStubs(): array
    {
        $files = [__DIR__ . '/Signatures.php', ...(glob(\dirname(__DIR__, 2) . '/stubs/*.php') ?: [])];
        $code = implode('', array_map(static fn(string $file) => 'require ' . var_export($file, true) . ';', $files))
            . 'echo json_encode(Weft\Tests\Stubs\Signatures::ofNamespace("Weft\Native"));';
        $signatures = json_decode(Execution::of([PHP_BINARY, '-n', '-r', $code])->output, true, flags: JSON_THROW_ON_ERROR);
        $names = array_map(static fn(string $name) => preg_replace('/^weft\\\\native\\\\/i', 'Weft\\Native\\', $name), array_keys($signatures));

        return array_combine($names, $signatures);
    }
}
