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

/** `weft dead:edit`: replaces the body of a dead letter, which `dead:retry` can then try again. */
#[AsCommand(name: 'dead:edit', description: 'Replace the body of one dead letter')]
final class DeadEditCommand extends DeadCommand
{
    protected function configure(): void
    {
        parent::configure();
        $this->addArgument('id', InputArgument::REQUIRED, 'Its message id')
            ->addOption('body', null, InputOption::VALUE_REQUIRED, 'File with the new body, - for standard input', '-')
            ->addOption('dry-run', null, InputOption::VALUE_NONE, 'Only show the old and the new body');
    }

    protected function work(Bus $bus, InputInterface $input, OutputInterface $output): int
    {
        $letters = self::queue($bus, $input)->deadLetters();
        $found = $letters->peek(1, self::filterById($input));
        if ($found === []) {
            return self::notFound($output, "No dead letter has the id {$input->getArgument('id')}.");
        }
        $body = self::body($input->getOption('body'));
        $output->writeln([Printable::text("- {$found[0]->body}"), Printable::text("+ {$body}")], OutputInterface::OUTPUT_RAW);
        $input->getOption('dry-run') || $letters->edit($input->getArgument('id'), $body);

        return self::SUCCESS;
    }

    /** An empty one would replace the message: standard input is empty where a script or cron has none. */
    private static function body(string $file): string
    {
        $body = \is_dir($file) ? false : @\file_get_contents($file === '-' ? 'php://stdin' : $file);
        if ($body === false) {
            throw new InvalidArgumentException("Cannot read {$file}" . (\is_dir($file) ? ': it is a directory.' : '.'));
        }

        return $body !== '' ? $body : throw new InvalidArgumentException('The new body is empty: ' . ($file === '-' ? 'standard input has none; give a file with --body.' : "{$file} is."));
    }
}
