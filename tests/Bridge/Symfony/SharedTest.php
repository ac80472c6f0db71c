<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Symfony;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Bridge\Symfony\Internal\Shared;
use Weft\Tests\Sql\Support\Databases;

require_once __DIR__ . '/autoload.php';

/** The database of the setting `weft.database`. */
final class SharedTest extends TestCase
{
    use Databases;

    /** @return iterable<string, array{string, string}> */
    public static function urls(): iterable
    {
        foreach (self::databases() as $name => [$kind]) {
            foreach (['serverVersion=16&charset=utf8', 'charset=utf8&serverVersion=16', 'serverVersion=16', 'charset=utf8mb4'] as $options) {
                yield "$name, $options" => [$kind, $options];
            }
        }
        yield 'beside an option of Weft' => ['postgres', 'serverVersion=16&application_name=site&charset=utf8'];
    }

    /** @dataProvider urls */
    #[DataProvider('urls')]
    public function testOptionsThatOnlyDoctrineReadsAreLeftOutOfItsUrl(string $kind, string $options): void
    {
        $dsn = $this->databaseDsn($kind);
        $database = Shared::database($dsn . (\str_contains($dsn, '?') ? '&' : '?') . $options, 1);
        $this->opened[] = $database;

        self::assertSame(1, (int) $database->execute('SELECT 1')->value());
        if (\str_contains($options, 'application_name')) {
            self::assertSame('site', $database->execute("SELECT current_setting('application_name')")->value());
        }
    }
}
