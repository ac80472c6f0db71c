<?php

declare(strict_types=1);

namespace Weft\Cli\Bus;

use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\Console\Exception\InvalidArgumentException;
use Symfony\Component\Console\Helper\Table;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Input\InputOption;
use Symfony\Component\Console\Output\OutputInterface;
use Weft\Bus\Bus;
use Weft\Bus\Saga\SagaStatus;
use Weft\Cli\Internal\Quantity;

/** `weft sagas:list`: the sagas there are, newest first. */
#[AsCommand(name: 'sagas:list', description: 'List sagas with their status, newest first')]
final class SagasListCommand extends BusCommand
{
    protected function configure(): void
    {
        parent::configure();
        $this->addArgument('saga', InputArgument::OPTIONAL, 'Name of the saga; all without');
        $this->addOption('status', null, InputOption::VALUE_REQUIRED, self::statuses());
        $this->addOption('limit', null, InputOption::VALUE_REQUIRED, 'How many at most', '100');
    }

    protected function work(Bus $bus, InputInterface $input, OutputInterface $output): int
    {
        $sagas = $bus->admin()->sagas()->list($input->getArgument('saga'), self::status($input->getOption('status')), Quantity::positive('limit', $input->getOption('limit')) ?? 100);
        $table = new Table($output);
        $table->setHeaders(['saga', 'id', 'status', 'version', 'started', 'expires', 'ended', 'reason']);
        foreach ($sagas as $saga) {
            $times = \array_map(static fn(?\DateTimeImmutable $time): string => $time?->format('Y-m-d H:i:s') ?? '', [$saga->startedAt, $saga->expiresAt, $saga->endedAt]);
            $table->addRow([self::cell($saga->saga), self::cell($saga->id), $saga->status->value, $saga->version, ...$times, self::cell(\mb_strimwidth($saga->reason, 0, 60, '…'))]);
        }
        $table->render();
        $output->writeln(\count($sagas) . ' sagas');

        return self::SUCCESS;
    }

    private static function statuses(): string
    {
        return \implode(', ', \array_map(static fn(SagaStatus $status): string => $status->value, SagaStatus::cases()));
    }

    private static function status(?string $name): ?SagaStatus
    {
        return $name === null ? null : SagaStatus::tryFrom($name)
            ?? throw new InvalidArgumentException("--status must be one of " . self::statuses() . ", got \"{$name}\".");
    }
}
