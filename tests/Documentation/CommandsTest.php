<?php

declare(strict_types=1);

namespace Weft\Tests\Documentation;

use PHPUnit\Framework\TestCase;
use Symfony\Component\Console\Input\InputArgument;
use Weft\Site\Reference;

require_once __DIR__ . '/../../site/autoload.php';

/** docs/reference/cli.md has the commands that there are, with their arguments and options. */
final class CommandsTest extends TestCase
{
    public function testEveryCommandHasASection(): void
    {
        self::assertEqualsCanonicalizing(\array_keys(Reference::all()), \array_keys(self::sections()));
    }

    public function testTheOverviewLinksToEverySection(): void
    {
        \preg_match_all('/\[`([a-z:]+)`\]\(#(weft-[a-z]+)\)/', self::page(), $links, \PREG_SET_ORDER);
        $linked = [];
        foreach ($links as [, $command, $anchor]) {
            self::assertSame('weft-' . \str_replace(':', '', $command), $anchor);
            $linked[] = $command;
        }

        self::assertEqualsCanonicalizing(\array_keys(Reference::all()), $linked);
    }

    public function testEverySectionHasTheArgumentsAndOptionsOfItsCommand(): void
    {
        foreach (Reference::all() as $name => $command) {
            $definition = $command->getDefinition();
            $options = [];
            foreach ($definition->getOptions() as $option) {
                $options[] = '--' . $option->getName() . ($option->getShortcut() === null ? '' : ", -{$option->getShortcut()}");
            }
            \preg_match_all('/^\| (`.+?`) \|/m', self::section($name), $rows);
            $documented = \array_map(static fn(string $cell): string => \str_replace('`', '', $cell), $rows[1]);

            self::assertEqualsCanonicalizing([...\array_keys($definition->getArguments()), ...$options], $documented, $name);
        }
    }

    public function testEverySynopsisIsThatOfItsCommand(): void
    {
        foreach (Reference::all() as $name => $command) {
            $definition = $command->getDefinition();
            $words = [...($definition->getOptions() === [] ? [] : ['[options]']), ...\array_map(self::synopsis(...), \array_values($definition->getArguments()))];
            // Arguments of an application follow `--`.
            $synopsis = \str_replace('[<arguments>...]', '[-- <arguments>...]', \implode(' ', ["weft {$name}", ...$words]));

            self::assertStringContainsString("\n```text\n{$synopsis}\n```\n", self::section($name));
        }
    }

    public function testEverySectionHasAnExample(): void
    {
        foreach (\array_keys(Reference::all()) as $name) {
            self::assertMatchesRegularExpression('/^```sh\nweft ' . $name . '\b/m', self::section($name));
        }
    }

    /** A default that the page names is the default of the option. */
    public function testEveryDefaultIsThatOfTheOption(): void
    {
        $compared = 0;
        foreach (Reference::all() as $name => $command) {
            foreach ($command->getDefinition()->getOptions() as $option) {
                $default = $option->getDefault();
                if (\is_string($default) && $default !== '') {
                    self::assertMatchesRegularExpression('/^\| `--' . $option->getName() . '`[^|]* \| `?' . \preg_quote($default, '/') . '(?!\w)/m', self::section($name), $name);
                    $compared++;
                }
            }
        }
        self::assertGreaterThan(7, $compared);
    }

    private static function synopsis(InputArgument $argument): string
    {
        $text = "<{$argument->getName()}>" . ($argument->isArray() ? '...' : '');

        return $argument->isRequired() ? $text : "[{$text}]";
    }

    private static function section(string $command): string
    {
        $section = self::sections()[$command] ?? null;
        self::assertNotNull($section, $command);

        return $section;
    }

    /** @return array<string, string> by command */
    private static function sections(): array
    {
        $sections = [];
        foreach (\array_slice(\explode("\n## weft ", self::page()), 1) as $section) {
            [$name, $text] = \explode("\n", $section, 2);
            $sections[$name] = $text;
        }

        return $sections;
    }

    private static function page(): string
    {
        return (string) \file_get_contents(\dirname(__DIR__, 2) . '/docs/reference/cli.md');
    }
}
