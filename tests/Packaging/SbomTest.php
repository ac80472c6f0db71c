<?php

declare(strict_types=1);

namespace Weft\Tests\Packaging;

use PHPUnit\Framework\TestCase;
use Weft\Version;

/** The list of crates in a release, which `scripts/sbom` makes. */
final class SbomTest extends TestCase
{
    private static string $root;
    private static string $contents;

    public static function setUpBeforeClass(): void
    {
        self::$root = \dirname(__DIR__, 2);
        $tools = (\getenv('WEFT_VAR') ?: self::$root . '/var') . '/cargo-tools/bin/cargo-cyclonedx';
        if (!\is_executable($tools)) {
            self::markTestSkipped('cargo-cyclonedx is not built: scripts/release builds it');
        }
        $file = (string) \tempnam(\sys_get_temp_dir(), 'weft');
        try {
            self::lines(\escapeshellarg(self::$root . '/scripts/sbom') . ' ' . \escapeshellarg($file));
            self::$contents = (string) \file_get_contents($file);
        } finally {
            \unlink($file);
        }
    }

    public function testItNamesTheExtensionAndItsCoreWithVersionAndLicence(): void
    {
        $sbom = self::sbom();
        $extension = $sbom['metadata']['component'];
        $core = \array_values(\array_filter($sbom['components'], static fn(array $crate): bool => $crate['name'] === 'weft-core'));

        self::assertSame('CycloneDX', $sbom['bomFormat']);
        self::assertCount(1, $core);
        foreach (['weft-ext' => $extension, 'weft-core' => $core[0]] as $name => $crate) {
            self::assertSame([$name, Version::LIBRARY, [['expression' => 'MIT']]], [$crate['name'], $crate['version'], $crate['licenses']]);
        }
    }

    public function testItHasEachCrateThatIsBuiltIntoTheExtensionWithALicence(): void
    {
        $listed = [];
        foreach (self::sbom()['components'] as $crate) {
            $listed[] = "{$crate['name']} v{$crate['version']}";
            self::assertNotSame([], $crate['licenses'] ?? [], $crate['name']);
        }
        $tree = self::lines('cd ' . \escapeshellarg(self::$root) . " && cargo tree --locked --offline --package weft-ext --edges normal,build --prefix none --format '{p}' 2>/dev/null");
        $built = \array_unique(\array_map(static fn(string $line): string => \implode(' ', \array_slice(\explode(' ', $line), 0, 2)), $tree));

        self::assertGreaterThan(100, \count($built));
        self::assertSame([], \array_values(\array_diff($built, $listed, ['weft-ext v' . Version::LIBRARY])));
    }

    public function testItDoesNotNameTheDirectoryOfTheCheckout(): void
    {
        self::assertStringNotContainsString(self::$root, self::$contents);
        self::assertStringContainsString('path+file:///crates/core#weft-core@' . Version::LIBRARY, self::$contents);
    }

    /** @return array<string, mixed> */
    private static function sbom(): array
    {
        return \json_decode(self::$contents, true, flags: \JSON_THROW_ON_ERROR);
    }

    /** @return list<string> lines */
    private static function lines(string $command): array
    {
        \exec($command, $output, $code);
        self::assertSame(0, $code, \implode("\n", $output));

        return $output;
    }
}
