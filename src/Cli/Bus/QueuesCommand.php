<?php

declare(strict_types=1);

namespace Weft\Cli\Bus;

use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\Console\Helper\Table;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Output\OutputInterface;
use Weft\Bus\Bus;

/** `weft queues`: what waits where. */
#[AsCommand(name: 'queues', description: 'Count messages in queues, dead-letter queues and the database')]
final class QueuesCommand extends BusCommand
{
    protected function configure(): void
    {
        parent::configure();
        $this->addArgument('queues', InputArgument::REQUIRED | InputArgument::IS_ARRAY, 'Names of queues');
    }

    protected function work(Bus $bus, InputInterface $input, OutputInterface $output): int
    {
        $table = new Table($output);
        $table->setHeaders(['queue', 'ready', 'dead letters', 'blocked keys', 'waiting for a key', 'paused']);
        /** @var list<string> $queues */
        $queues = $input->getArgument('queues');
        foreach ($queues as $queue) {
            $administered = self::queueNamed($bus, $queue);
            [$ready, $letters, $blocked] = [$administered->depth(), $administered->deadLetters()->count(), $administered->blockedKeys()];
            $waiting = \array_sum(\array_column($blocked, 'waiting'));
            $table->addRow([self::cell($queue), $ready, $letters, \count($blocked), $waiting, $administered->isPaused() ? 'yes' : '']);
        }
        $table->render();
        foreach ($bus->admin()->backlog() as $what => $count) {
            $output->writeln("{$what}: {$count}");
        }

        return self::SUCCESS;
    }
}
