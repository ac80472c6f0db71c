<?php

declare(strict_types=1);

namespace Weft\Tests\Harness;

use PHPUnit\Framework\TestCase;

/** PHPUnit 9 reads annotations and PHPUnit 12 and later read attributes: a test that has one of them has the other. */
final class MetadataTest extends TestCase
{
    private const ATTRIBUTES = [
        'after' => 'After', 'afterClass' => 'AfterClass', 'before' => 'Before', 'beforeClass' => 'BeforeClass', 'dataProvider' => 'DataProvider',
        'depends' => 'Depends', 'group' => 'Group', 'requires extension' => 'RequiresPhpExtension', 'runInSeparateProcess' => 'RunInSeparateProcess',
        'test' => 'Test', 'testWith' => 'TestWith',
    ];

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
