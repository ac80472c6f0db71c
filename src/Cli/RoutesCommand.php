<?php

declare(strict_types=1);

namespace Weft\Cli;

use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Output\OutputInterface;
use Weft\Http\Internal\Routing\Route;
use Weft\Http\Router;
use Weft\Internal\Inspection;
use Weft\Internal\Printable;

/** `weft routes`: lists the routes of an application. */
#[AsCommand(name: 'routes', description: 'List the routes of an application with their handlers')]
final class RoutesCommand extends Command
{
    protected function configure(): void
    {
        $this->addArgument('file', InputArgument::REQUIRED, 'PHP file that runs a Weft\App, or returns one or a Weft\Http\Router');
        $this->setHelp('The file is executed, but its servers do not start. Each line has method, path, name and handler with file and line.');
    }

    protected function execute(InputInterface $input, OutputInterface $output): int
    {
        try {
            $routers = Inspection::routers($input->getArgument('file'));
        } catch (\InvalidArgumentException $error) {
            throw new ApplicationFileException($error->getMessage(), previous: $error);
        }
        foreach ($routers as $address => $router) {
            \count($routers) < 2 || $output->writeln($address, OutputInterface::OUTPUT_RAW);
            foreach (self::lines($router) as $line) {
                $output->writeln(Printable::line($line), OutputInterface::OUTPUT_RAW);
            }
        }

        return self::SUCCESS;
    }

    /** @return list<string> */
    private static function lines(Router $router): array
    {
        $rows = \array_map(static fn(Route $route): array => [
            \implode('|', $route->methods),
            $route->pattern->path,
            $route->name ?? '-',
            \str_replace((string) \getcwd() . '/', '', $route->plan->source),
        ], $router->routes());
        $widths = \array_map(static fn(int $column): int => \max([0, ...\array_map(\strlen(...), \array_column($rows, $column))]), [0, 1, 2]);

        return \array_map(static fn(array $row): string => \sprintf("%-{$widths[0]}s  %-{$widths[1]}s  %-{$widths[2]}s  %s", ...$row), $rows);
    }
}
