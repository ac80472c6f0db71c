<?php

declare(strict_types=1);

namespace Weft\Cli;

use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Output\OutputInterface;
use Weft\Cli\Internal\Diagnosis;
use Weft\Cli\Internal\Finding;
use Weft\Cli\Internal\Health;
use Weft\Internal\ErrorDocumentation;

/** `weft doctor`: checks this machine and this PHP for problems. */
#[AsCommand(name: 'doctor', description: 'Check PHP, the extension and the limits of this machine')]
final class DoctorCommand extends Command
{
    protected function configure(): void
    {
        $this->setHelp('Exit code 0: no check failed; there may be warnings. Exit code 1: at least one check failed.');
    }

    protected function execute(InputInterface $input, OutputInterface $output): int
    {
        $findings = (new Diagnosis())->findings();
        foreach ($findings as $finding) {
            $output->writeln(self::line($finding));
        }
        $count = static fn(Health $health): int => \count(\array_filter($findings, static fn(Finding $f): bool => $f->health === $health));
        $warnings = $count(Health::Warn);
        $output->writeln(\sprintf('%d passed, %d %s, %d failed', $count(Health::Ok), $warnings, $warnings === 1 ? 'warning' : 'warnings', $count(Health::Fail)));

        return $count(Health::Fail) === 0 ? self::SUCCESS : self::FAILURE;
    }

    private static function line(Finding $finding): string
    {
        $colour = match ($finding->health) {
            Health::Ok => 'info',
            Health::Warn => 'comment',
            Health::Fail => 'error',
        };
        $advice = $finding->advice === null ? '' : "\n       {$finding->advice} Help: " . ErrorDocumentation::ofCheck($finding->subject)->location();

        return \sprintf('<%1$s>%2$-4s</%1$s>  %3$-18s %4$s%5$s', $colour, $finding->health->value, $finding->subject, $finding->found, $advice);
    }
}
