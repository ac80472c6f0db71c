<?php

declare(strict_types=1);

namespace Weft\Cli\Bus;

use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Input\InputOption;
use Symfony\Component\Console\Output\OutputInterface;
use Weft\Bus\Bus;
use Weft\Bus\ConsumeOptions;
use Weft\Cli\Internal\Quantity;

/** `weft consume`: handles the messages of a queue. */
#[AsCommand(name: 'consume', description: 'Handle the messages of a queue until SIGTERM or SIGINT')]
final class ConsumeCommand extends BusCommand
{
    protected function configure(): void
    {
        parent::configure();
        $this->addArgument('queue', InputArgument::REQUIRED, 'Name of the queue; it is made where it is missing')
            ->addOption('concurrency', 'c', InputOption::VALUE_REQUIRED, 'Handlers at a time; by default as many as do not make each other slower')
            ->addOption('prefetch', null, InputOption::VALUE_REQUIRED, 'Messages taken from the broker at a time; by default twice the concurrency, or 200 without one')
            ->addOption('limit', null, InputOption::VALUE_REQUIRED, 'Return after so many messages')
            ->addOption('stop-after', null, InputOption::VALUE_REQUIRED, 'Return after so many seconds, above 0')
            ->addOption('stop-when-empty', null, InputOption::VALUE_NONE, 'Return when the queue is empty')
            ->setHelp('The first SIGTERM or SIGINT finishes and acknowledges the messages in flight; a second one cancels their handlers and requeues them.');
    }

    protected function work(Bus $bus, InputInterface $input, OutputInterface $output): int
    {
        $option = static fn(string $name): ?string => $input->getOption($name);
        $queue = self::queue($bus, $input);
        $bus->consume($queue->name, Quantity::positive('concurrency', $option('concurrency'), ConsumeOptions::MAX_CONCURRENCY), new ConsumeOptions(
            prefetch: Quantity::positive('prefetch', $option('prefetch'), ConsumeOptions::MAX_PREFETCH),
            limit: Quantity::positive('limit', $option('limit')),
            stopWhenEmpty: $input->getOption('stop-when-empty'),
            stopAfter: Quantity::duration('stop-after', $option('stop-after'), ConsumeOptions::MAX_STOP_AFTER),
        ));
        $stats = $bus->admin()->stats();
        $output->writeln("{$stats->succeeded()} succeeded, {$stats->retried} retried later, {$stats->deadLettered} dead-lettered, {$stats->duplicates} duplicates");

        return self::SUCCESS;
    }
}
