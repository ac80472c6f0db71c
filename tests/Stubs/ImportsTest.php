<?php

declare(strict_types=1);

namespace Weft\Tests\Stubs;

use PHPUnit\Framework\TestCase;

/** A class that was renamed leaves imports behind in programs that no test of its own area runs. */
final class ImportsTest extends TestCase
{
    private const DIRECTORIES = ['src', 'bench', 'examples', 'bin'];

    public function testEveryImportOfTheLibraryNamesSomethingThatIsThere(): void
    {
        $missing = [];
        $seen = 0;
        foreach (self::imports() as [$place, $isFunction, $name]) {
            ++$seen;
            if (!($isFunction ? \function_exists($name) : self::isDeclared($name))) {
                $missing[] = "{$place} imports {$name}";
            }
        }

        self::assertGreaterThan(500, $seen);
        self::assertSame([], $missing);
    }

    private static function isDeclared(string $name): bool
    {
        if (\str_starts_with($name, 'Weft\\Bridge\\')) {
            // What a class of a bridge extends need not be installed.
            return \is_file(\dirname(__DIR__, 2) . '/src/' . \strtr(\substr($name, 5), '\\', '/') . '.php');
        }

        return \class_exists($name) || \interface_exists($name) || \trait_exists($name);
    }

    /** @return iterable<array{string, bool, string}> file and line, whether a function is meant, and its name */
    private static function imports(): iterable
    {
        $root = \dirname(__DIR__, 2);
        foreach (self::DIRECTORIES as $directory) {
            foreach (new \RecursiveIteratorIterator(new \RecursiveDirectoryIterator("{$root}/{$directory}", \FilesystemIterator::SKIP_DOTS)) as $file) {
                $text = $file->isFile() && $file->getSize() < 1_000_000 ? (string) \file_get_contents($file->getPathname()) : '';
                if (!\str_starts_with($text, '<?php') && !\str_starts_with($text, '#!/usr/bin/env php')) {
                    continue;
                }
                foreach (\explode("\n", $text) as $number => $line) {
                    if (\preg_match('/^use (function )?(Weft\\\\(?!Bench\\\\|Examples\\\\|Tests\\\\)[\w\\\\]+)(?: as \w+)?;/', $line, $found) && !self::isNamespace($found[2])) {
                        yield [\substr($file->getPathname(), \strlen($root) + 1) . ':' . ($number + 1), $found[1] !== '', $found[2]];
                    }
                }
            }
        }
    }

    private static function isNamespace(string $name): bool
    {
        return $name === 'Weft\Native' || \is_dir(\dirname(__DIR__, 2) . '/src/' . \strtr(\substr($name, 5), '\\', '/'));
    }
}
