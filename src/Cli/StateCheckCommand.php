<?php

declare(strict_types=1);

namespace Weft\Cli;

use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Exception\InvalidOptionException;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Input\InputOption;
use Symfony\Component\Console\Output\OutputInterface;
use Weft\Cli\Internal\Quantity;
use Weft\Cli\Internal\StateCheck;
use Weft\Internal\Printable;

/** `weft state:check`: names what requests leave behind in an application. */
#[AsCommand(name: 'state:check', description: 'Name what requests leave behind in static properties and services')]
final class StateCheckCommand extends Command
{
    protected function configure(): void
    {
        $this
            ->addArgument('file', InputArgument::REQUIRED, 'PHP file that serves the application, as for weft run')
            ->addOption('path', 'p', InputOption::VALUE_REQUIRED | InputOption::VALUE_IS_ARRAY, 'Path to request, with its query; may be given several times', ['/'])
            ->addOption('header', 'H', InputOption::VALUE_REQUIRED | InputOption::VALUE_IS_ARRAY, 'Header field of each request: "Cookie: PHPSESSID=…"')
            ->addOption('repeat', null, InputOption::VALUE_REQUIRED, 'Requests of each path', '4')
            ->setHelp('Starts the application, sends GET requests one after the other, and compares what static properties, static variables of functions and services hold before and after each. The first two rounds are not reported: they fill caches. Only the kinds of values are shown. Exit code 0: nothing was left behind. Exit code 1: something was.');
    }

    protected function execute(InputInterface $input, OutputInterface $output): int
    {
        $file = (string) $input->getArgument('file');
        if (!\is_file($file)) {
            throw new ApplicationFileException("There is no file {$file}.");
        }
        $repeat = Quantity::positive('repeat', (string) $input->getOption('repeat'));
        if ($repeat < 3) {
            throw new InvalidOptionException("--repeat must be at least 3, because two rounds fill caches; got {$repeat}.");
        }
        $findings = (new StateCheck($file, $input->getOption('path'), $input->getOption('header'), $repeat))->run();
        foreach ($findings as $finding) {
            $output->writeln(Printable::line(\sprintf('%s left behind %s: %s, before: %s', $finding['request'], $finding['name'], $finding['kind'], $finding['before'])), OutputInterface::OUTPUT_RAW);
        }
        $count = \count($findings);
        $output->writeln($count === 0 ? 'Nothing was left behind.' : "$count " . ($count === 1 ? 'value was' : 'values were') . ' left behind.');

        return $count === 0 ? self::SUCCESS : self::FAILURE;
    }
}
