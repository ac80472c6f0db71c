<?php

declare(strict_types=1);

namespace Weft\Cli\Bus;

use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Input\InputOption;
use Symfony\Component\Console\Output\OutputInterface;
use Weft\Bus\Bus;
use Weft\Cli\Internal\Quantity;

/** `weft dead:retry`: gives dead letters back to their queue. */
#[AsCommand(name: 'dead:retry', description: 'Move dead letters back to their queue; they keep their ids')]
final class DeadRetryCommand extends DeadCommand
{
    protected function configure(): void
    {
        parent::configure();
        $this->addFilter();
        $this->addOption('all', null, InputOption::VALUE_NONE, 'All dead letters of the queue, or all that the filters select')
            ->addOption('rate', null, InputOption::VALUE_REQUIRED, 'At most this many per second')
            ->addOption('dry-run', null, InputOption::VALUE_NONE, 'Only list the dead letters that would be retried');
    }

    protected function work(Bus $bus, InputInterface $input, OutputInterface $output): int
    {
        self::requireChoice($input);
        $rate = Quantity::rate('rate', $input->getOption('rate'));
        $letters = self::queue($bus, $input)->deadLetters();
        $limit = Quantity::positive('limit', $input->getOption('limit'));
        if ($input->getOption('dry-run')) {
            $found = $letters->peek($limit ?? \PHP_INT_MAX, self::filter($input));
            if ($found === [] && $input->getOption('id') !== null) {
                return self::noneWithId($output, $input);
            }
            self::print($output, ...$found);
            $output->writeln(\count($found) . ' would be retried');

            return self::SUCCESS;
        }
        $retried = $letters->retry(self::filter($input), $rate, $limit);
        if ($retried === 0 && $input->getOption('id') !== null) {
            return self::noneWithId($output, $input);
        }
        $output->writeln("{$retried} retried");

        return self::SUCCESS;
    }
}
