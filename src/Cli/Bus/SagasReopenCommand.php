<?php

declare(strict_types=1);

namespace Weft\Cli\Bus;

use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\Console\Exception\InvalidArgumentException;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Input\InputOption;
use Symfony\Component\Console\Output\OutputInterface;
use Weft\Bus\Bus;
use Weft\Internal\Printable;

/** `weft sagas:reopen`: lets a saga that has ended handle messages again. */
#[AsCommand(name: 'sagas:reopen', description: 'Reopen a saga that has completed, failed or expired')]
final class SagasReopenCommand extends BusCommand
{
    protected function configure(): void
    {
        parent::configure();
        $this->addArgument('saga', InputArgument::REQUIRED, 'Name of the saga');
        $this->addArgument('id', InputArgument::REQUIRED, 'Value of the property or header that its messages are found by');
        $this->addOption('expires', null, InputOption::VALUE_REQUIRED, 'Seconds from now until it expires, or never; by default as the class says');
        $this->addOption('reason', null, InputOption::VALUE_REQUIRED, 'Stored with the saga and published with SagaReopened', '');
    }

    protected function work(Bus $bus, InputInterface $input, OutputInterface $output): int
    {
        [$saga, $id] = [(string) $input->getArgument('saga'), (string) $input->getArgument('id')];
        $expires = self::expires($input->getOption('expires'));
        try {
            $bus->admin()->sagas()->reopen($saga, $id, $expires, (string) $input->getOption('reason'));
        } catch (\ValueError $error) {
            throw new InvalidArgumentException(Printable::line($error->getMessage()), 0, $error);
        }
        $output->writeln(Printable::line("Saga {$saga} \"{$id}\" is reopened."), OutputInterface::OUTPUT_RAW);

        return self::SUCCESS;
    }

    private static function expires(?string $option): ?float
    {
        return match (true) {
            $option === null => null,
            $option === 'never' => \INF,
            \is_numeric($option) && (float) $option > 0.0 => (float) $option,
            default => throw new InvalidArgumentException("--expires must be a number of seconds above 0 or never, got \"{$option}\"."),
        };
    }
}
