<?php

declare(strict_types=1);

namespace Weft\Cli\Bus;

use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Output\OutputInterface;
use Weft\Bus\Bus;
use Weft\Bus\DeadLetterFilter;

/** `weft dead:show`: everything there is to know of one dead letter. */
#[AsCommand(name: 'dead:show', description: 'Show one dead letter with its headers, stack and body')]
final class DeadShowCommand extends DeadCommand
{
    protected function configure(): void
    {
        parent::configure();
        $this->addArgument('id', InputArgument::REQUIRED, 'Its message id');
    }

    protected function work(Bus $bus, InputInterface $input, OutputInterface $output): int
    {
        $found = $bus->deadLetters($input->getArgument('queue'))->peek(1, new DeadLetterFilter(id: $input->getArgument('id')));
        if ($found === []) {
            $output->writeln("No dead letter has the id {$input->getArgument('id')}.");

            return self::FAILURE;
        }
        $output->writeln("type: {$found[0]->type}", OutputInterface::OUTPUT_RAW);
        foreach ($found[0]->headers as $name => $value) {
            $output->writeln("{$name}: " . \str_replace("\n", "\n  ", \rtrim($value)), OutputInterface::OUTPUT_RAW);
        }
        $output->writeln(['', $found[0]->body], OutputInterface::OUTPUT_RAW);

        return self::SUCCESS;
    }
}
