<?php

declare(strict_types=1);

namespace Weft\Tests\Sql;

use PHPUnit\Framework\TestCase;
use Weft\Sql\Database;

/** Runs the programs of docs/reference/sql.md and compares what it says they give. */
final class DocumentationTest extends TestCase
{
    private const EXAMPLE_DSN = 'postgres://app:secret@localhost/app';

    public function testTheProgramsOfThePageGiveWhatItSaysOnPostgres(): void
    {
        $server = \getenv('DATABASE_URL');
        self::assertNotFalse($server, 'DATABASE_URL is not set: run `make services`');
        $schema = 'weft_docs_' . \bin2hex(\random_bytes(6));
        $admin = Database::connect($server);
        $admin->execute("CREATE SCHEMA {$schema}");
        try {
            $this->runPage("{$server}?options=-csearch_path%3D{$schema}");
        } finally {
            $admin->execute("DROP SCHEMA {$schema} CASCADE");
            $admin->close();
        }
    }

    public function testTheProgramsOfThePageGiveWhatItSaysOnMariaDb(): void
    {
        $server = \getenv('WEFT_MYSQL_DSN');
        self::assertNotFalse($server, 'WEFT_MYSQL_DSN is not set: run `make services`');
        $database = 'weft_docs_' . \bin2hex(\random_bytes(6));
        $admin = Database::connect($server);
        $admin->execute("CREATE DATABASE {$database}");
        try {
            $this->runPage((string) \preg_replace('~/weft$~', "/{$database}", $server));
        } finally {
            $admin->execute("DROP DATABASE {$database}");
            $admin->close();
        }
    }

    public function testTheProgramsOfThePageGiveWhatItSaysOnSqlite(): void
    {
        $this->runPage('sqlite::memory:');
    }

    public function testEveryErrorClassIsInThePage(): void
    {
        $page = self::page();
        $classes = \array_map(static fn (string $file): string => \basename($file, '.php'), \glob(\dirname(__DIR__, 2) . '/src/Sql/*.php') ?: []);
        $errors = \array_filter($classes, static fn (string $class): bool => \is_subclass_of("Weft\\Sql\\{$class}", \Throwable::class));

        self::assertNotEmpty($errors);
        foreach ($errors as $class) {
            self::assertStringContainsString("`{$class}`", \str_replace('Weft\\Sql\\', '', $page), "docs/reference/sql.md does not mention {$class}");
        }
    }

    private function runPage(string $dsn): void
    {
        \preg_match_all('/^(?:<!-- (\w+) -->\n)?```php\n(.*?)^```$/ms', self::page(), $programs, \PREG_SET_ORDER);
        $results = [];
        // Some are about one database only.
        $fitting = \array_filter($programs, static fn (array $program): bool => \in_array($program[1], ['', \strstr($dsn, ':', true)], true));
        $program = \implode('', \array_column($fitting, 2));
        self::assertStringContainsString(self::EXAMPLE_DSN, $program);
        $program = \strtr($program, [self::EXAMPLE_DSN => $dsn]);
        // `$value = …; // expected` becomes a comparison as well.
        $checked = \preg_replace('/^(\$\w+) = .*; +\/\/ (.+)$/m', '$0' . "\n" . '$results[] = [\'$1\', $2, $1];', $program);

        eval($checked);

        self::assertGreaterThan(4, \count($results));
        foreach ($results as [$name, $expected, $actual]) {
            self::assertSame($expected, $actual, $name);
        }
    }

    private static function page(): string
    {
        return (string) \file_get_contents(\dirname(__DIR__, 2) . '/docs/reference/sql.md');
    }
}
