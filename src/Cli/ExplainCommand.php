<?php

declare(strict_types=1);

namespace Weft\Cli;

use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Output\OutputInterface;
use Weft\Internal\ErrorDocumentation;

/** `weft explain`: prints the page about an error. */
#[AsCommand(name: 'explain', description: 'Explain an error: its cause, how to confirm it and how to fix it')]
final class ExplainCommand extends Command
{
    private const PAGES = __DIR__ . '/../../docs/errors';

    protected function configure(): void
    {
        $this->addArgument('name', InputArgument::OPTIONAL, 'Name of the page as an error message shows it, or the class of an exception, with or without its namespace');
        $this->setHelp('Without a name it lists the names. With the environment variable ' . ErrorDocumentation::ADDRESS
            . ', the address of a published version of the documentation, error messages have links instead of names.');
    }

    protected function execute(InputInterface $input, OutputInterface $output): int
    {
        $name = \ltrim((string) $input->getArgument('name'), '\\');
        if ($name === '') {
            $output->writeln(self::names(), OutputInterface::OUTPUT_RAW);

            return self::SUCCESS;
        }
        $name = \str_starts_with($name, 'Weft\\') ? ErrorDocumentation::ofClass($name)->name : $name;
        $pages = \in_array($name, self::names(), true) ? [$name] : self::pagesOf($name);
        if ($pages === []) {
            throw new UnknownErrorException($name, self::similar($name));
        }
        $texts = \array_map(static fn(string $page): string => \rtrim((string) \file_get_contents(self::PAGES . "/$page.md")), $pages);
        $output->writeln(\implode("\n\n", $texts), OutputInterface::OUTPUT_RAW);

        return self::SUCCESS;
    }

    /** @return list<string> the pages about the exceptions with a name without the namespace, or without its beginning; packages share some names */
    private static function pagesOf(string $class): array
    {
        $isAbout = static fn(string $page): bool => \preg_match('/^`Weft\\\\(?:\w+\\\\)*' . \preg_quote($class, '/') . '`$/mi', (string) \file_get_contents(self::PAGES . "/$page.md")) === 1;

        return \array_values(\array_filter(self::names(), $isAbout));
    }

    /** @return list<string> */
    private static function names(): array
    {
        $names = \array_map(static fn(string $file): string => \basename($file, '.md'), \glob(self::PAGES . '/*.md') ?: []);

        $names = \array_diff($names, ['index']);
        \sort($names);

        return $names;
    }

    /** @return list<string> names that contain what was given, or are a few letters away, the nearest first */
    private static function similar(string $name): array
    {
        $letters = static fn(string $text): string => \strtolower((string) \preg_replace('/\W+/', '', $text));
        $wanted = $letters((string) \preg_replace('/(Exception|Error)$/', '', $name));
        $isSimilar = static fn(string $known): bool => \str_contains($letters($known), $wanted) || \levenshtein($letters($known), $wanted) < 4;

        $similar = \array_values(\array_filter(self::names(), $isSimilar));
        \usort($similar, static fn(string $a, string $b): int => \levenshtein($letters($a), $wanted) <=> \levenshtein($letters($b), $wanted));

        return \array_slice($similar, 0, 5);
    }
}
