<?php

declare(strict_types=1);

namespace Weft\Cli\Bus;

use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Input\InputOption;
use Symfony\Component\Console\Output\OutputInterface;
use Weft\Bus\Bus;
use Weft\Internal\Printable;

/** `weft dead:show`: everything there is to know of one dead letter. */
#[AsCommand(name: 'dead:show', description: 'Show one dead letter with its headers, stack and body')]
final class DeadShowCommand extends DeadCommand
{
    protected function configure(): void
    {
        parent::configure();
        $this->addArgument('id', InputArgument::REQUIRED, 'Its message id')
            ->addOption('raw', null, InputOption::VALUE_NONE, 'Only the body, byte for byte, for a file; without it control characters are escaped');
    }

    protected function work(Bus $bus, InputInterface $input, OutputInterface $output): int
    {
        $found = self::queue($bus, $input)->deadLetters()->peek(1, self::filterById($input));
        if ($found === []) {
            return self::notFound($output, "No dead letter has the id {$input->getArgument('id')}.");
        }
        if ($input->getOption('raw')) {
            $output->write($found[0]->body, options: OutputInterface::OUTPUT_RAW);

            return self::SUCCESS;
        }
        $output->writeln(Printable::line("type: {$found[0]->type}"), OutputInterface::OUTPUT_RAW);
        foreach ($found[0]->headers as $name => $value) {
            $output->writeln(Printable::line("{$name}: ") . Printable::text(\str_replace("\n", "\n  ", \rtrim($value))), OutputInterface::OUTPUT_RAW);
        }
        $output->writeln(['', Printable::text($found[0]->body)], OutputInterface::OUTPUT_RAW);

        return self::SUCCESS;
    }
}
