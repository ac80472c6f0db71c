<?php

declare(strict_types=1);

namespace Weft\Tests\Harness;

use PHPUnit\Framework\TestCase;

/** What the versions of PHPUnit from 9 to 13 have in common, so that one set of tests runs with all of them. */
final class MetadataTest extends TestCase
{
    private const ATTRIBUTES = [
        'after' => 'After', 'afterClass' => 'AfterClass', 'before' => 'Before', 'beforeClass' => 'BeforeClass', 'dataProvider' => 'DataProvider',
        'depends' => 'Depends', 'group' => 'Group', 'requires extension' => 'RequiresPhpExtension', 'runInSeparateProcess' => 'RunInSeparateProcess',
        'test' => 'Test', 'testWith' => 'TestWith',
    ];

    /** Final methods of TestCase in some version: a class that declares one of them is a fatal error there. */
    private const FINAL = [
        'addToAssertionCount', 'any', 'atLeast', 'atLeastOnce', 'atMost', 'attempt', 'count', 'createInvocationJournal', 'createMock',
        'createPartialMock', 'dataName', 'dataSetAsString', 'dataSetAsStringWithData', 'dependencyInput', 'doesNotPerformAssertions', 'exactly',
        'groups', 'hasDependencyInput', 'hasUnexpectedOutput', 'isInIsolation', 'maxAttempts', 'name', 'nameWithDataSet', 'never',
        'numberOfAssertionsPerformed', 'once', 'output', 'preservesGlobalState', 'providedData', 'provides', 'registerFailureType', 'repetition',
        'requires', 'result', 'run', 'size', 'sortId', 'status', 'throwException', 'totalRepetitions', 'usesDataProvider',
        'valueObjectForEvents', 'wasPrepared',
    ];

    /** PHPUnit 9 reads annotations and PHPUnit 12 and later read attributes: a test that has one of them has the other. */
    public function testEveryAnnotationHasItsAttribute(): void
    {
        $found = 0;
        $missing = [];
        foreach (self::files() as $file) {
            $contents = (string) \file_get_contents($file);
            // A declaration's comment, then its attributes.
            \preg_match_all('{^ *(/\*\*(?:(?!\*/).)*?\*/)\n((?: *#\[[^\n]*\]\n)*)}ms', $contents, $declarations, \PREG_SET_ORDER | \PREG_OFFSET_CAPTURE);
            foreach ($declarations as [, [$comment], [$attributes, $offset]]) {
                $expected = self::annotations($comment);
                $found += \count($expected);
                if ($expected !== self::attributes($attributes)) {
                    $missing[] = \substr($file, \strlen(\dirname(__DIR__)) + 1) . ':' . 1 + \substr_count($contents, "\n", 0, $offset) . ': ' . \implode(' ', $expected);
                }
            }
            $missing = [...$missing, ...self::unknown($file, $contents)];
        }

        self::assertSame([], $missing);
        self::assertGreaterThan(300, $found);
    }

    public function testNoTestDeclaresAMethodOfPhpUnit(): void
    {
        $seen = 0;
        $found = [];
        foreach (self::files() as $file) {
            \preg_match_all('{^[a-z ]*class \w+ extends \w*TestCase\b.*?^\}}ms', (string) \file_get_contents($file), $classes);
            $seen += \count($classes[0]);
            // Methods of the class and not of programs in its strings, which are indented further.
            \preg_match_all('{^    (?! )[a-z ]*\bfunction (' . \implode('|', self::FINAL) . ')\(}mi', \implode("\n", $classes[0]), $declared);
            $declared[1] === [] || $found[\substr($file, \strlen(\dirname(__DIR__)) + 1)] = $declared[1];
        }

        self::assertSame([], $found);
        self::assertGreaterThan(200, $seen);
    }

    public function testTheSuitesNameFilesThatExist(): void
    {
        $root = \dirname(__DIR__, 2);
        $named = \simplexml_load_file("$root/phpunit.xml.dist")?->xpath('//testsuite/*') ?: [];

        self::assertSame([], \array_values(\array_filter(\array_map(\strval(...), $named), static fn(string $path): bool => !\file_exists("$root/$path"))));
        self::assertGreaterThan(20, \count($named));
    }

    /** @return iterable<string> */
    private static function files(): iterable
    {
        foreach (new \RecursiveIteratorIterator(new \RecursiveDirectoryIterator(\dirname(__DIR__), \FilesystemIterator::SKIP_DOTS)) as $file) {
            if ($file instanceof \SplFileInfo && $file->getExtension() === 'php') {
                yield $file->getPathname();
            }
        }
    }

    /** @return list<string> as attributes */
    private static function annotations(string $comment): array
    {
        $names = \implode('|', \array_keys(self::ATTRIBUTES));
        \preg_match_all("{^[/* ]*@($names)\\b *(\\w*)}m", $comment, $annotations, \PREG_SET_ORDER);

        return \array_map(static fn(array $annotation): string => '#[' . self::ATTRIBUTES[$annotation[1]] . ($annotation[2] === '' ? '' : "('$annotation[2]')") . ']', $annotations);
    }

    /** @return list<string> those of PHPUnit */
    private static function attributes(string $attributes): array
    {
        $names = \implode('|', self::ATTRIBUTES);
        \preg_match_all("{#\\[(?:$names)\\b[^]]*\\]}", $attributes, $found);

        return $found[0];
    }

    /** @return list<string> attributes that are used without the import that makes them PHPUnit's */
    private static function unknown(string $file, string $contents): array
    {
        \preg_match_all('{^ *#\[(' . \implode('|', self::ATTRIBUTES) . ')\b}m', $contents, $used);

        return \array_values(\array_filter(
            \array_map(static fn(string $name): string => "$file: use PHPUnit\\Framework\\Attributes\\$name", \array_unique($used[1])),
            static fn(string $import): bool => !\str_contains($contents, \substr($import, \strlen($file) + 2) . ";\n"),
        ));
    }
}
