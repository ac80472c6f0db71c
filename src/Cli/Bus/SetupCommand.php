<?php

declare(strict_types=1);

namespace Weft\Cli\Bus;

use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Input\InputOption;
use Symfony\Component\Console\Output\OutputInterface;
use Weft\Bus\Bus;

/** `weft setup`: makes queues, bindings and tables. */
#[AsCommand(name: 'setup', description: 'Create missing queues, bindings and tables')]
final class SetupCommand extends BusCommand
{
    protected function configure(): void
    {
        parent::configure();
        $this->addArgument('queues', InputArgument::REQUIRED | InputArgument::IS_ARRAY, 'Names of queues')
            ->addOption('dry-run', null, InputOption::VALUE_NONE, 'Only say what would be made')
            ->setHelp('Can be run any number of times. `weft consume` does the same by itself; this is for accounts that may not.');
    }

    protected function work(Bus $bus, InputInterface $input, OutputInterface $output): int
    {
        /** @var list<string> $queues */
        $queues = $input->getArgument('queues');
        foreach ($queues as $queue) {
            foreach ($bus->queue($queue)->plan() as $step) {
                $output->writeln(self::cell($step));
            }
            $input->getOption('dry-run') || $bus->queue($queue)->declare();
        }

        return self::SUCCESS;
    }
}
