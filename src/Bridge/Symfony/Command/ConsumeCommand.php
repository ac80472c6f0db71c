<?php

declare(strict_types=1);

namespace Weft\Bridge\Symfony\Command;

use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Input\InputOption;
use Symfony\Component\Console\Output\OutputInterface;
use Weft\Bus\Bus;
use Weft\Bus\ConsumeOptions;

use function Weft\run;

/** `bin/console weft:consume orders`: runs the handlers and listeners of a queue. */
#[AsCommand(name: 'weft:consume', description: 'Handle the messages of a queue, many at once')]
final class ConsumeCommand extends Command
{
    public function __construct(private readonly Bus $bus)
    {
        parent::__construct();
    }

    protected function configure(): void
    {
        $this
            ->addArgument('queue', InputArgument::REQUIRED, 'The queue; it is declared if it is missing')
            ->addOption('concurrency', 'c', InputOption::VALUE_REQUIRED, 'Messages that are handled at the same time', '100')
            ->addOption('limit', 'l', InputOption::VALUE_REQUIRED, 'Stop after this many messages')
            ->addOption('stop-when-empty', null, InputOption::VALUE_NONE, 'Stop when the queue is empty');
    }

    protected function execute(InputInterface $input, OutputInterface $output): int
    {
        $queue = (string) $input->getArgument('queue');
        $limit = $input->getOption('limit');
        $handled = run(function () use ($queue, $limit, $input): int {
            $this->bus->queue($queue)->declare();
            $options = new ConsumeOptions(limit: $limit === null ? null : \max(1, (int) $limit), stopWhenEmpty: (bool) $input->getOption('stop-when-empty'));

            return $this->bus->consume($queue, \max(1, (int) $input->getOption('concurrency')), $options);
        });
        $output->writeln("$handled messages handled", OutputInterface::VERBOSITY_VERBOSE);

        return self::SUCCESS;
    }
}
