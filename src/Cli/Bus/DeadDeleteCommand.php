<?php

declare(strict_types=1);

namespace Weft\Cli\Bus;

use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Input\InputOption;
use Symfony\Component\Console\Output\OutputInterface;
use Weft\Bus\Bus;
use Weft\Cli\Internal\Quantity;

/** `weft dead:delete`: deletes dead letters. */
#[AsCommand(name: 'dead:delete', description: 'Delete dead letters permanently')]
final class DeadDeleteCommand extends DeadCommand
{
    protected function configure(): void
    {
        parent::configure();
        $this->addFilter();
        $this->addOption('all', null, InputOption::VALUE_NONE, 'All dead letters of the queue, or all that the filters select')
            ->addOption('dry-run', null, InputOption::VALUE_NONE, 'Only list them')
            ->setHelp('A key of ordered messages that a deleted dead letter has blocked is released: the messages behind it are handled in order.');
    }

    protected function work(Bus $bus, InputInterface $input, OutputInterface $output): int
    {
        self::requireChoice($input);
        $letters = self::queue($bus, $input)->deadLetters();
        $limit = Quantity::positive('limit', $input->getOption('limit'));
        if ($input->getOption('dry-run')) {
            $found = $letters->peek($limit ?? \PHP_INT_MAX, self::filter($input));
            if ($found === [] && $input->getOption('id') !== null) {
                return self::noneWithId($output, $input);
            }
            self::print($output, ...$found);
            $output->writeln(\count($found) . ' would be deleted');

            return self::SUCCESS;
        }
        $deleted = $letters->delete(self::filter($input), $limit);
        if ($deleted === 0 && $input->getOption('id') !== null) {
            return self::noneWithId($output, $input);
        }
        $output->writeln("{$deleted} deleted");

        return self::SUCCESS;
    }
}
