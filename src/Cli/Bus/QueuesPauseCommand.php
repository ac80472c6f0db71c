<?php

declare(strict_types=1);

namespace Weft\Cli\Bus;

use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Output\OutputInterface;
use Weft\Bus\Bus;

/** `weft queues:pause`: stops the consumption of a queue. */
#[AsCommand(name: 'queues:pause', description: 'Stop the consumption of a queue in all processes until it is resumed')]
final class QueuesPauseCommand extends BusCommand
{
    protected function configure(): void
    {
        parent::configure();
        $this->addArgument('queue', InputArgument::REQUIRED, 'Name of the queue');
    }

    protected function work(Bus $bus, InputInterface $input, OutputInterface $output): int
    {
        self::queue($bus, $input)->pause();
        $output->writeln('paused');

        return self::SUCCESS;
    }
}
