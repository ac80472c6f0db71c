<?php

declare(strict_types=1);

namespace Weft\Cli\Bus;

use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\Console\Exception\InvalidArgumentException;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Input\InputOption;
use Symfony\Component\Console\Output\OutputInterface;
use Weft\Bus\Bus;

/** `weft schema:check`: fails when messages that are on their way would not be understood any more. */
#[AsCommand(name: 'schema:check', description: 'Compare the message classes with a lock file; fails on an incompatible change')]
final class SchemaCheckCommand extends BusCommand
{
    protected function configure(): void
    {
        parent::configure();
        $this->addOption('lock', null, InputOption::VALUE_REQUIRED, 'The lock file', 'weft-schema.json')
            ->addOption('update', null, InputOption::VALUE_NONE, 'Write the lock file, incompatible changes too')
            ->setHelp('Keep the lock file with the code. An incompatible change needs a new version in #[MessageType] and an #[Upcaster].');
    }

    protected function work(Bus $bus, InputInterface $input, OutputInterface $output): int
    {
        $file = $input->getOption('lock');
        $update = $input->getOption('update');
        $known = \is_file($file) ? (string) \file_get_contents($file) : null;
        if ($known === null && !$update) {
            throw new InvalidArgumentException("There is no lock file {$file}. Write it with --update.");
        }
        try {
            $change = $bus->admin()->compareSchema($known);
        } catch (\ValueError $error) {
            throw new InvalidArgumentException("{$file}: {$error->getMessage()}", previous: $error);
        }
        foreach ($change->breaking as $line) {
            $output->writeln(self::cell("incompatible  {$line}"));
        }
        foreach ($change->compatible as $line) {
            $output->writeln(self::cell("compatible    {$line}"));
        }
        if ($update) {
            if (@\file_put_contents($file, $change->lock) === false) {
                throw new InvalidArgumentException("{$file} cannot be written: " . (\error_get_last()['message'] ?? 'no reason given'));
            }
            $output->writeln("{$file} written");

            return self::SUCCESS;
        }
        $output->writeln(match (true) {
            $change->breaking !== [] => \count($change->breaking) . ' incompatible changes',
            $change->compatible !== [] => 'compatible; write the lock file with --update',
            default => 'nothing has changed',
        });

        return $change->breaking === [] ? self::SUCCESS : self::FAILURE;
    }
}
