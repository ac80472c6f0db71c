<?php

declare(strict_types=1);

namespace Weft\Cli\Bus;

use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Output\OutputInterface;
use Weft\Bus\Bus;
use Weft\Cli\Internal\Quantity;

/** `weft dead:list`: the dead letters of a queue, oldest first. */
#[AsCommand(name: 'dead:list', description: 'List the dead letters of a queue')]
final class DeadListCommand extends DeadCommand
{
    protected function configure(): void
    {
        parent::configure();
        $this->addFilter(limit: '100');
    }

    protected function work(Bus $bus, InputInterface $input, OutputInterface $output): int
    {
        $letters = self::queue($bus, $input)->deadLetters();
        $found = $letters->peek(Quantity::positive('limit', $input->getOption('limit')) ?? 100, self::filter($input));
        self::print($output, ...$found);
        $output->writeln(\count($found) . ' of ' . $letters->count() . ' dead letters');

        return self::SUCCESS;
    }
}
