<?php

declare(strict_types=1);

namespace Weft\Bridge\Symfony\Command;

use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Exception\InvalidOptionException;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Input\InputOption;
use Symfony\Component\Console\Output\OutputInterface;
use Weft\Bridge\Internal\Setting;
use Weft\Bus\Bus;
use Weft\Bus\ConsumeOptions;
use Weft\UsageError;

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
        try {
            $concurrency = Setting::integer('--concurrency', $input->getOption('concurrency'), 1, ConsumeOptions::MAX_CONCURRENCY);
            $limit = $input->getOption('limit') === null ? null : Setting::integer('--limit', $input->getOption('limit'), 1);
        } catch (UsageError $refused) {
            throw new InvalidOptionException($refused->getMessage(), previous: $refused);
        }
        $options = new ConsumeOptions(limit: $limit, stopWhenEmpty: (bool) $input->getOption('stop-when-empty'));
        $handled = run(function () use ($queue, $concurrency, $options): int {
            $this->bus->queue($queue)->declare();

            return $this->bus->consume($queue, $concurrency, $options);
        });
        $output->writeln("$handled messages handled", OutputInterface::VERBOSITY_VERBOSE);

        return self::SUCCESS;
    }
}
