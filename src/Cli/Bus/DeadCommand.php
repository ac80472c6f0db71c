<?php

declare(strict_types=1);

namespace Weft\Cli\Bus;

use Symfony\Component\Console\Exception\InvalidArgumentException;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Input\InputOption;
use Symfony\Component\Console\Output\OutputInterface;
use Weft\Bus\DeadLetter;
use Weft\Bus\DeadLetterFilter;
use Weft\Bus\Header;
use Weft\Cli\Internal\Quantity;
use Weft\Internal\Printable;

/** A command about dead letters. */
abstract class DeadCommand extends BusCommand
{
    protected function configure(): void
    {
        parent::configure();
        $this->addArgument('queue', InputArgument::REQUIRED, 'The queue they failed in');
    }

    protected function addFilter(?string $limit = null): void
    {
        $this->addOption('id', null, InputOption::VALUE_REQUIRED, 'Only the dead letter with this message id')
            ->addOption('type', null, InputOption::VALUE_REQUIRED, 'Only those of this message type')
            ->addOption('error', null, InputOption::VALUE_REQUIRED, 'Only those whose error has this class, or this text in its message')
            ->addOption('handler', null, InputOption::VALUE_REQUIRED, 'Only those that failed in this handler: Class::method, or the end of it')
            ->addOption('limit', null, InputOption::VALUE_REQUIRED, 'At most this many dead letters', $limit);
    }

    protected static function filter(InputInterface $input): DeadLetterFilter
    {
        return new DeadLetterFilter(...\array_map(static fn(string $criterion): ?string => Quantity::text($criterion, $input->getOption($criterion)), ['id', 'type', 'error', 'handler']));
    }

    /** Of the one that the argument names. */
    protected static function filterById(InputInterface $input): DeadLetterFilter
    {
        $id = (string) $input->getArgument('id');

        return $id === '' ? throw new InvalidArgumentException('The id of a dead letter is empty.') : new DeadLetterFilter(id: $id);
    }

    /** The id is misspelt, or the other criteria exclude its dead letter. */
    protected static function noneWithId(OutputInterface $output, InputInterface $input): int
    {
        $others = \array_filter(['type', 'error', 'handler'], static fn(string $criterion): bool => $input->getOption($criterion) !== null);

        return self::notFound($output, "No dead letter of queue {$input->getArgument('queue')} has the id {$input->getOption('id')}" . ($others === [] ? '.' : ' and fits --' . \implode(' and --', $others) . '.'));
    }

    /** Requires a selection for commands that change several dead letters. */
    protected static function requireChoice(InputInterface $input): void
    {
        if (self::filter($input) == new DeadLetterFilter() && !$input->getOption('all')) {
            throw new InvalidArgumentException('Say which dead letters: --id, --type, --error, --handler, or --all.');
        }
    }

    protected static function print(OutputInterface $output, DeadLetter ...$letters): void
    {
        foreach ($letters as $letter) {
            $output->writeln(Printable::line(\sprintf(
                '%s  %s  %s  %s: %s (%d attempts)',
                $letter->messageId(),
                $letter->headers[Header::FAILED_AT] ?? '-',
                $letter->type,
                $letter->errorClass(),
                \strtok($letter->errorMessage(), "\n") ?: '',
                $letter->attempts(),
            )), OutputInterface::OUTPUT_RAW);
        }
    }
}
