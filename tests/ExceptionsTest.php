<?php

declare(strict_types=1);

namespace Weft\Tests;

use PHPUnit\Framework\TestCase;
use Weft\Exception;
use Weft\Sql\Database;
use Weft\Sql\FileNotOpenedException;

use function Weft\run;

/** The rule of docs/architecture.md for everything that can be thrown. */
final class ExceptionsTest extends TestCase
{
    private const SOURCES = __DIR__ . '/../src';

    public function testANameSaysWhetherTheWorldOrTheCallerHasFailed(): void
    {
        foreach (self::throwables() as $class) {
            $isMistake = $class->isSubclassOf(\Error::class);

            self::assertStringEndsWith($isMistake ? 'Error' : 'Exception', $class->getShortName());
        }
    }

    public function testExceptionsThatUsersSeeAreMarked(): void
    {
        foreach (self::throwables() as $class) {
            if (!self::isInternal($class)) {
                self::assertTrue($class->implementsInterface(Exception::class), $class->getName());
            }
        }
    }

    public function testAMistakeIsAnErrorOrAValueErrorOrAUsageError(): void
    {
        foreach (self::throwables() as $class) {
            if ($class->isSubclassOf(\Error::class)) {
                self::assertContains($class->getParentClass()->getName(), [\Error::class, \ValueError::class, \Weft\UsageError::class], $class->getName());
            }
        }
    }

    public function testAFailureOfTheExtensionIsAtTheLineThatCallsWeft(): void
    {
        $connect = static fn(): Database => Database::connect('sqlite:/nonexistent/x.db');
        $line = __LINE__ - 1;
        foreach ([$connect, static fn(): mixed => run($connect)] as $call) {
            try {
                $call();
                self::fail('the file was opened');
            } catch (FileNotOpenedException $failure) {
                self::assertSame([__FILE__, $line], [$failure->getFile(), $failure->getLine()]);
                self::assertStringContainsString('/src/Sql/', $failure->getTraceAsString());
            }
        }
    }

    public function testFailuresOfAPackageHaveOneBase(): void
    {
        $bases = [];
        foreach (self::throwables() as $class) {
            if ($class->isSubclassOf(\Exception::class) && !self::isInternal($class)) {
                self::assertTrue($class->isSubclassOf(\RuntimeException::class), $class->getName());
                for ($base = $class; $base->getParentClass()->getName() !== \RuntimeException::class; $base = $base->getParentClass());
                $bases[\explode('\\', $class->getName())[1]][$base->getName()] = true;
            }
        }

        self::assertNotSame([], $bases);
        foreach ($bases as $package => $found) {
            self::assertCount(1, $found, $package);
            self::assertStringStartsWith("Weft\\$package\\", (string) \key($found));
        }
    }

    public function testNoTwoPackagesHaveAMistakeOfTheSameName(): void
    {
        $names = [];
        foreach (self::throwables() as $class) {
            if ($class->isSubclassOf(\Error::class)) {
                self::assertArrayNotHasKey($class->getShortName(), $names, $class->getName());
                $names[$class->getShortName()] = true;
            }
        }
    }

    /** @return list<\ReflectionClass<\Throwable>> every class of the library that can be thrown */
    private static function throwables(): array
    {
        $found = [];
        foreach (new \RecursiveIteratorIterator(new \RecursiveDirectoryIterator(self::SOURCES, \FilesystemIterator::SKIP_DOTS)) as $file) {
            $path = \substr($file->getPathname(), \strlen(self::SOURCES) + 1, -4);
            if (\str_starts_with($path, 'Bridge/')) {
                // What a bridge throws is an exception of its framework, which need not be installed.
                continue;
            }
            $name = 'Weft\\' . \strtr($path, '/', '\\');
            // A file whose name begins with a small letter holds functions.
            if (\ctype_upper(\basename($path)[0]) && \class_exists($name) && \is_a($name, \Throwable::class, true)) {
                $found[] = new \ReflectionClass($name);
            }
        }
        self::assertGreaterThan(100, \count($found));

        return $found;
    }

    /** @param \ReflectionClass<\Throwable> $class */
    private static function isInternal(\ReflectionClass $class): bool
    {
        return \str_contains($class->getName(), '\\Internal\\');
    }
}
