<?php

declare(strict_types=1);

namespace Weft\Bridge\Symfony\Command;

use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Output\OutputInterface;
use Weft\Bus\Bus;

/** `bin/console weft:setup orders`: declares queues with the message types of the application's handlers. */
#[AsCommand(name: 'weft:setup', description: 'Declare queues and make the tables of the bus')]
final class SetupCommand extends Command
{
    public function __construct(private readonly Bus $bus)
    {
        parent::__construct();
    }

    protected function configure(): void
    {
        $this->addArgument('queues', InputArgument::REQUIRED | InputArgument::IS_ARRAY, 'The queues');
    }

    protected function execute(InputInterface $input, OutputInterface $output): int
    {
        /** @var list<string> $queues */
        $queues = $input->getArgument('queues');
        foreach ($queues as $queue) {
            $this->bus->queue($queue)->declare();
            $output->writeln("queue $queue is declared");
        }

        return self::SUCCESS;
    }
}
