<?php

declare(strict_types=1);

namespace Weft\Tests\Packaging;

use PHPUnit\Framework\TestCase;

/** The workflows of continuous integration only call what `make` and `scripts` have. */
final class WorkflowsTest extends TestCase
{
    public function testTheyCallTargetsAndScriptsThatExist(): void
    {
        \preg_match_all('/^([a-z][a-z0-9-]*):/m', (string) \file_get_contents(self::root() . '/Makefile'), $targets);
        $called = [];
        foreach (\explode("\n", self::workflows()) as $line) {
            if (\preg_match('/\bmake ([a-z][a-z0-9-]+)/', \preg_replace('/apt-get install.*/', '', $line) ?? '', $match) === 1) {
                self::assertContains($match[1], $targets[1], "make $match[1]");
                $called[] = $match[1];
            }
            \preg_match_all('~(?<=^|[ ;&])(?:scripts|\.ci)/[\w-]+~', $line, $scripts);
            foreach ($scripts[0] as $script) {
                self::assertFileExists(self::root() . "/$script");
                $called[] = $script;
            }
        }

        self::assertSame([], \array_diff(['check', 'bench-guard', 'test-matrix', 'test-install', '.ci/run', 'scripts/release', 'scripts/publish'], $called));
    }

    public function testHelpListsEveryTargetThatIsDocumented(): void
    {
        $makefile = (string) \file_get_contents(self::root() . '/Makefile');
        \preg_match_all('/^[^\s#][^:\n]*:[^=\n]*## /m', $makefile, $documented);
        \exec('make -s -C ' . \escapeshellarg(self::root()) . ' help', $help);
        \preg_match_all('/^  make ([\w-]+) /m', \implode("\n", $help), $listed);

        self::assertCount(\count($documented[0]), $listed[1]);
        self::assertContains('release-arm64', $listed[1]);
    }

    public function testTheMatrixHasARowForEverySystem(): void
    {
        self::assertSame(1, \preg_match('/^ +name: \[(.+)\]$/m', (string) \file_get_contents(self::root() . '/.github/workflows/matrix.yml'), $rows));

        \exec(self::root() . '/scripts/chroot --list', $systems);

        self::assertSame(\array_map(static fn(string $system): string => \explode(' ', $system)[0], $systems), \explode(', ', $rows[1]));
    }

    public function testAReleaseHasEveryVersionOfPhp(): void
    {
        self::assertSame(1, \preg_match('/^ +php: \[(.+)\]$/m', (string) \file_get_contents(self::root() . '/.github/workflows/release.yml'), $rows));

        \exec(self::root() . '/scripts/chroot --list', $systems);
        $names = [];
        foreach ($systems as $system) {
            [$name, , $php] = \explode(' ', $system);
            $names[$php] ??= $name;
        }

        self::assertSame(\array_values($names), \explode(', ', $rows[1]));
    }

    private static function root(): string
    {
        return \dirname(__DIR__, 2);
    }

    private static function workflows(): string
    {
        return \implode("\n", \array_map(static fn(string $file): string => (string) \file_get_contents($file), \glob(self::root() . '/.github/workflows/*.yml') ?: []));
    }
}
