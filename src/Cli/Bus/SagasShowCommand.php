<?php

declare(strict_types=1);

namespace Weft\Cli\Bus;

use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Output\OutputInterface;
use Weft\Bus\Bus;
use Weft\Internal\Printable;

/** `weft sagas:show`: everything there is to know of one saga. */
#[AsCommand(name: 'sagas:show', description: 'Show one saga with its properties')]
final class SagasShowCommand extends BusCommand
{
    protected function configure(): void
    {
        parent::configure();
        $this->addArgument('saga', InputArgument::REQUIRED, 'Name of the saga');
        $this->addArgument('id', InputArgument::REQUIRED, 'Value of the property or header that its messages are found by');
    }

    protected function work(Bus $bus, InputInterface $input, OutputInterface $output): int
    {
        $saga = $bus->admin()->sagas()->find($input->getArgument('saga'), $input->getArgument('id'));
        if ($saga === null) {
            return self::notFound($output, "No saga {$input->getArgument('saga')} has the id {$input->getArgument('id')}.");
        }
        $lines = [
            'saga' => $saga->saga,
            'id' => $saga->id,
            'status' => $saga->status->value,
            'version' => (string) $saga->version,
            'started' => $saga->startedAt->format('Y-m-d\TH:i:s.vp'),
            'expires' => $saga->expiresAt?->format('Y-m-d\TH:i:s.vp') ?? 'never',
            'ended' => $saga->endedAt?->format('Y-m-d\TH:i:s.vp') ?? '',
            'reason' => $saga->reason,
        ];
        foreach ($lines as $name => $value) {
            $output->writeln(Printable::line("{$name}: {$value}"), OutputInterface::OUTPUT_RAW);
        }
        $state = \json_encode(\json_decode($saga->state), \JSON_PRETTY_PRINT | \JSON_UNESCAPED_UNICODE | \JSON_UNESCAPED_SLASHES | \JSON_PRESERVE_ZERO_FRACTION);
        $output->writeln(['', Printable::text($state === false ? $saga->state : $state)], OutputInterface::OUTPUT_RAW);

        return self::SUCCESS;
    }
}
