<?php

declare(strict_types=1);

namespace Weft\Cli\Bus;

use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Exception\InvalidArgumentException;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Input\InputOption;
use Symfony\Component\Console\Output\OutputInterface;
use Weft\Bus\Bus;
use Weft\Cli\Internal\Components;
use Weft\Sql\Database;
use Weft\Sql\Driver;
use Weft\Sql\Internal\Schema\Component;
use Weft\Sql\Internal\Schema\Migrator;
use Weft\Sql\Internal\Schema\Step;
use Weft\Version;

use function Weft\run;

/** `weft setup`: creates and upgrades tables, and creates queues and bindings. */
#[AsCommand(name: 'setup', description: 'Create or upgrade tables; create missing queues and bindings')]
final class SetupCommand extends Command
{
    protected function configure(): void
    {
        $this->addArgument('file', InputArgument::OPTIONAL, 'PHP file that returns the Weft\Bus\Bus with its handlers, a Weft\Sql\Database, or a closure that makes one of them')
            ->addArgument('queues', InputArgument::OPTIONAL | InputArgument::IS_ARRAY, 'Names of queues')
            ->addOption('dry-run', null, InputOption::VALUE_NONE, 'Only say what would be done')
            ->addOption('check', null, InputOption::VALUE_NONE, 'Only say how the tables differ from what this version of Weft needs; exit with 1 if they do')
            ->addOption('sql', null, InputOption::VALUE_NONE, 'Only print the SQL, for migrations')
            ->addOption('contract', null, InputOption::VALUE_NONE, 'Remove what only workers of the version before need, once none of them runs; also with --dry-run or --sql')
            ->addOption('component', null, InputOption::VALUE_REQUIRED | InputOption::VALUE_IS_ARRAY, 'Further components, besides those that the bus uses or the database has: ' . Components::NAMES)
            ->addOption('driver', null, InputOption::VALUE_REQUIRED, 'With --sql and without a file, which database: postgres, mysql or sqlite')
            ->addOption('from', null, InputOption::VALUE_REQUIRED, 'With --driver, the version of Weft whose tables are upgraded, such as 0.1; default: there are none')
            ->setHelp(<<<'HELP'
                Can be run any number of times, also while workers run. Workers do the same when they start, unless their database was connected
                with <info>createTables: false</info>.

                An upgrade keeps what workers of the version before need: update them one after the other, then run <info>--contract</info>.
                HELP);
    }

    protected function execute(InputInterface $input, OutputInterface $output): int
    {
        if (\count(\array_filter(['dry-run', 'check', 'sql'], static fn(string $option): bool => $input->getOption($option) === true)) > 1) {
            throw new InvalidArgumentException('Only one of --dry-run, --check and --sql can be given.');
        }
        if ($input->getOption('contract') && $input->getOption('check')) {
            throw new InvalidArgumentException('--contract and --check cannot be given together; --contract --dry-run says what it would remove.');
        }
        if ($input->getOption('driver') !== null) {
            return $this->script($input, $output);
        }
        if ($input->getOption('from') !== null) {
            throw new InvalidArgumentException('--from goes with --driver: a database is asked for the version of its tables.');
        }
        foreach ($input->getArgument('queues') === [] ? [] : ['check', 'sql', 'contract'] as $option) {
            if ($input->getOption($option)) {
                throw new InvalidArgumentException("--{$option} is about tables only: do not name queues.");
            }
        }
        $file = $input->getArgument('file') ?? throw new InvalidArgumentException('A file is needed, except with --sql and --driver.');

        return run(function () use ($file, $input, $output): int {
            Migrator::pause();
            $made = BusCommand::evaluate($file, Bus::class, Database::class);
            try {
                if ($made instanceof Database && $input->getArgument('queues') !== []) {
                    throw new InvalidArgumentException("{$file} returns a " . Database::class . ', which has no queues: give a file that returns a ' . Bus::class . '.');
                }

                return $this->tables($made, $input, $output) | ($made instanceof Bus ? $this->queues($made, $input, $output) : self::SUCCESS);
            } finally {
                $made->close();
            }
        });
    }

    private function tables(Bus|Database $made, InputInterface $input, OutputInterface $output): int
    {
        $exit = self::SUCCESS;
        /** @var list<string> $further */
        $further = $input->getOption('component');
        foreach (self::components($made, $further) as [$database, $component]) {
            $migrator = new Migrator($database);
            $title = BusCommand::cell("{$component->name} in {$database->name()}");
            if ($input->getOption('check')) {
                $differences = $migrator->differences($component);
                $exit = $differences === [] ? $exit : self::FAILURE;
                $output->writeln(\array_map(static fn(string $line): string => "{$title}: " . BusCommand::cell($line), $differences));
            } elseif ($input->getOption('contract')) {
                $this->contract($migrator, $component, $database->driver(), $title, $input, $output);
            } elseif ($input->getOption('sql')) {
                self::print($output, $title, $migrator->sql($component));
            } else {
                $output->writeln(\array_map(static fn(string $line): string => "{$title}: {$line}", $migrator->pending($component)));
                $input->getOption('dry-run') || $migrator->upgrade($component);
                if ($migrator->leftovers($component) !== []) {
                    $output->writeln("{$title}: workers of the version before can go on; once none of them runs, run setup with --contract");
                }
            }
        }
        if ($input->getOption('check') && $exit === self::SUCCESS) {
            $output->writeln('no differences');
        }

        return $exit;
    }

    private function contract(Migrator $migrator, Component $component, Driver $driver, string $title, InputInterface $input, OutputInterface $output): void
    {
        $steps = $migrator->leftovers($component);
        if ($input->getOption('sql')) {
            self::print($output, $title, Migrator::contractSql($component, $driver, $steps));

            return;
        }
        $output->writeln(\array_map(static fn(Step $step): string => "{$title}: {$step->summary}", $steps));
        $input->getOption('dry-run') || $migrator->contract($component);
    }

    private function queues(Bus $bus, InputInterface $input, OutputInterface $output): int
    {
        /** @var list<string> $queues */
        $queues = $input->getArgument('queues');
        foreach ($queues as $queue) {
            $administered = BusCommand::queueNamed($bus, $queue);
            foreach ($administered->plan() as $step) {
                $output->writeln(BusCommand::cell($step));
            }
            $input->getOption('dry-run') || $administered->declare();
        }

        return self::SUCCESS;
    }

    /**
     * The components that the bus uses, those of its databases, and those that were requested.
     *
     * @param list<string> $further
     * @return list<array{Database, Component}>
     */
    private static function components(Bus|Database $made, array $further): array
    {
        $used = $made instanceof Bus ? $made->admin()->components() : [];
        $databases = $made instanceof Bus ? [] : [$made];
        $components = [];
        foreach ($used as [$database, $component]) {
            $databases[\spl_object_id($database)] = $database;
            $components[\spl_object_id($database) . $component->name] = [$database, $component];
        }
        foreach ($databases as $database) {
            $found = \array_filter(Components::of($database->driver()), static fn(Component $component): bool => (new Migrator($database))->isPresent($component));
            foreach ([...$found, ...Components::named($database->driver(), $further)] as $component) {
                $components[\spl_object_id($database) . $component->name] ??= [$database, $component];
            }
        }

        return \array_values($components);
    }

    private function script(InputInterface $input, OutputInterface $output): int
    {
        $name = (string) $input->getOption('driver');
        $driver = Driver::tryFrom($name) ?? throw new InvalidArgumentException("--driver must be postgres, mysql or sqlite, got \"{$name}\".");
        if (!$input->getOption('sql') || $input->getArgument('file') !== null) {
            throw new InvalidArgumentException('--driver goes with --sql and without a file, whose database is asked otherwise.');
        }
        /** @var list<string> $names */
        $names = $input->getOption('component');
        $release = self::release($input->getOption('from'));
        foreach ($names === [] ? Components::of($driver) : Components::named($driver, $names) as $component) {
            self::print($output, $component->name, $input->getOption('contract')
                ? Migrator::contractSql($component, $driver, $component->latest()?->contract($driver) ?? [])
                : Migrator::script($component, $driver, $release === null ? 0 : $component->versionOf($release)));
        }

        return self::SUCCESS;
    }

    /** A release that has been: of a later one this version does not know the tables. */
    private static function release(?string $name): ?string
    {
        if ($name !== null && (\preg_match('/^\d+\.\d+(\.\d+)?$/D', $name) !== 1 || \version_compare($name, Version::LIBRARY, '>'))) {
            throw new InvalidArgumentException("--from must be a version of Weft, such as 0.1, and at most " . Version::LIBRARY . ", got \"{$name}\".");
        }

        return $name;
    }

    /** @param list<string> $statements */
    private static function print(OutputInterface $output, string $title, array $statements): void
    {
        if ($statements !== []) {
            $output->writeln("-- {$title}");
            $output->writeln(\array_map(static fn(string $statement): string => "{$statement};", $statements), OutputInterface::OUTPUT_RAW);
        }
    }
}
