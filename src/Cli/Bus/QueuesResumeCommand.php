<?php

declare(strict_types=1);

namespace Weft\Cli\Bus;

use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Output\OutputInterface;
use Weft\Bus\Bus;

/** `weft queues:resume`: continues the consumption of a paused queue. */
#[AsCommand(name: 'queues:resume', description: 'Continue the consumption of a paused queue')]
final class QueuesResumeCommand extends BusCommand
{
    protected function configure(): void
    {
        parent::configure();
        $this->addArgument('queue', InputArgument::REQUIRED, 'Name of the queue');
    }

    protected function work(Bus $bus, InputInterface $input, OutputInterface $output): int
    {
        $wasPaused = self::queue($bus, $input)->resume();
        if (!$wasPaused) {
            return self::notFound($output, "The queue {$input->getArgument('queue')} is not paused.");
        }
        $output->writeln('resumed');

        return self::SUCCESS;
    }
}
