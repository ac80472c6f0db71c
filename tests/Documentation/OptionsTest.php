<?php

declare(strict_types=1);

namespace Weft\Tests\Documentation;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

/** Tables of options name every option that there is. */
final class OptionsTest extends TestCase
{
    /**
     * @dataProvider classes
     *
     * @param class-string $class
     */
    #[DataProvider('classes')]
    public function testTheRowOfTheClassNamesItsOptions(string $class): void
    {
        $reflection = new \ReflectionClass($class);
        self::assertSame(1, \preg_match("/^\\| `{$reflection->getShortName()}` \\| .+? \\| (.+) \\|$/m", self::page('bus'), $row));
        \preg_match_all('/`(\w+)`/', $row[1], $names);

        self::assertEqualsCanonicalizing(self::parameters($reflection->getConstructor()), $names[1]);
    }

    /** @return iterable<string, array{class-string}> */
    public static function classes(): iterable
    {
        foreach ([\Weft\Bus\BusOptions::class, \Weft\Bus\InboxOptions::class, \Weft\Bus\MessageOptions::class, \Weft\Bus\SendOptions::class, \Weft\Bus\ConsumeOptions::class] as $class) {
            yield $class => [$class];
        }
    }

    public function testTheTableOfRunNamesItsOptions(): void
    {
        \preg_match('/^`run\(\)` has options\..*?\n\n(.*?)\n\n/ms', self::page('runtime'), $table);
        \preg_match_all('/^\| `(\w+)` \|/m', $table[1] ?? '', $names);

        self::assertSame(\array_values(\array_diff(self::parameters(new \ReflectionFunction('Weft\run')), ['main'])), $names[1]);
    }

    /** @return list<string> */
    private static function parameters(?\ReflectionFunctionAbstract $function): array
    {
        return \array_map(static fn(\ReflectionParameter $parameter): string => $parameter->getName(), $function?->getParameters() ?? []);
    }

    private static function page(string $name): string
    {
        return (string) \file_get_contents(\dirname(__DIR__, 2) . "/docs/reference/{$name}.md");
    }
}
