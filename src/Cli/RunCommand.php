<?php

declare(strict_types=1);

namespace Weft\Cli;

use Symfony\Component\Console\Attribute\AsCommand;
use Psr\Log\LogLevel;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Exception\InvalidOptionException;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Input\InputOption;
use Symfony\Component\Console\Output\ConsoleOutputInterface;
use Symfony\Component\Console\Output\OutputInterface;
use Weft\Cli\Internal\Interpreter;
use Weft\Cli\Internal\Processors;
use Weft\Cli\Internal\Quantity;
use Weft\Cli\Internal\ServingAdvice;
use Weft\Http\InvalidAddressError;
use Weft\Internal\MetricsAddress;
use Weft\Log\Format;
use Weft\Log\StreamLogger;
use Weft\Workers\Internal\RunOptions;
use Weft\Workers\Internal\Supervisor;
use Weft\Workers\SupervisorException;

/** `weft run app.php`: runs an application in supervised worker processes. */
#[AsCommand(name: 'run', description: 'Run an application in worker processes, restart and reload them')]
final class RunCommand extends Command
{
    protected function configure(): void
    {
        $this
            ->addArgument('application', InputArgument::REQUIRED, 'The PHP file that every worker runs')
            ->addArgument('arguments', InputArgument::IS_ARRAY, 'Arguments for the file, after --')
            ->addOption('workers', 'w', InputOption::VALUE_REQUIRED, 'Number of workers, or auto: one per CPU that this process may use', '1')
            ->addOption('watch', null, InputOption::VALUE_NONE, 'Reload when a source file of the application\'s project changes')
            ->addOption('watch-path', null, InputOption::VALUE_REQUIRED | InputOption::VALUE_IS_ARRAY, 'Reload when this file, or a source file in this directory, changes')
            ->addOption('max-requests', null, InputOption::VALUE_REQUIRED, 'Recycle a worker after this many requests')
            ->addOption('max-memory', null, InputOption::VALUE_REQUIRED, 'Recycle a worker above this resident memory: bytes, or 256M, 1G')
            ->addOption('max-age', null, InputOption::VALUE_REQUIRED, 'Recycle a worker after this many seconds')
            ->addOption('hang-timeout', null, InputOption::VALUE_REQUIRED, 'Restart a worker whose event loop is blocked for this many seconds; 0 disables it', '30')
            ->addOption('block-warning', null, InputOption::VALUE_REQUIRED, 'Log code that blocks the event loop for this many seconds; 0 disables it [default: 0.1 with --watch, otherwise 0]')
            ->addOption('start-timeout', null, InputOption::VALUE_REQUIRED, 'Seconds for a worker to become ready', '60')
            ->addOption('drain-timeout', null, InputOption::VALUE_REQUIRED, 'Seconds for a worker to finish its work in flight; above the grace of the App', '40')
            ->addOption('max-crashes', null, InputOption::VALUE_REQUIRED, 'Give up after this many consecutive failures of all workers', '8')
            ->addOption('metrics', null, InputOption::VALUE_REQUIRED, 'Serve /metrics, /ready and /live on this address, such as 127.0.0.1:9464')
            ->addOption('pid-file', null, InputOption::VALUE_REQUIRED, 'Write the supervisor\'s pid to this file')
            ->addOption('log', null, InputOption::VALUE_REQUIRED, 'text or json [default: WEFT_LOG, otherwise text]')
            ->setHelp('Signals: SIGTERM and SIGINT stop gracefully, a second one kills; SIGHUP and SIGUSR2 reload; SIGUSR1 logs the workers. Details: docs/reference/operations.md.');
    }

    protected function execute(InputInterface $input, OutputInterface $output): int
    {
        try {
            $format = self::format($input->getOption('log'));
            $level = $output->isQuiet() ? LogLevel::WARNING : ($output->isVerbose() ? LogLevel::DEBUG : null);
            $logger = StreamLogger::fromEnvironment($format, $level);
            // Workers inherit the variables of this process: only options replace them.
            $environment = ($format === null ? [] : ['WEFT_LOG' => $format->value]) + ($level === null ? [] : ['WEFT_LOG_LEVEL' => $level]);
            $runOptions = $this->runOptions($input, $environment);
        } catch (InvalidOptionException | \ValueError $refused) {
            self::complain($output, $refused->getMessage());
            return self::INVALID;
        }
        try {
            return (new Supervisor($runOptions, $logger))->run();
        } catch (SupervisorException $failure) {
            self::complain($output, $failure->getMessage());
            return self::FAILURE;
        }
    }

    private static function format(?string $given): ?Format
    {
        return $given === null ? null : Format::tryFrom($given) ?? throw new InvalidOptionException("--log is \"$given\": it must be text or json");
    }

    /** @param array<string, string> $environment of the workers */
    private function runOptions(InputInterface $input, array $environment): RunOptions
    {
        $file = (string) $input->getArgument('application');
        if (!\is_file($file)) {
            throw new InvalidOptionException("there is no file \"$file\" to run");
        }
        $option = static fn(string $name): ?string => $input->getOption($name);
        // Those that have a default.
        $given = static fn(string $name): string => (string) $input->getOption($name);
        /** @var list<string> $arguments */
        $arguments = $input->getArgument('arguments');
        $hang = Quantity::seconds('hang-timeout', $option('hang-timeout'));
        $block = Quantity::seconds('block-warning', $option('block-warning')) ?? ($input->getOption('watch') ? 0.1 : 0.0);

        return new RunOptions(
            command: [\PHP_BINARY, ...Interpreter::options(), $file, ...$arguments],
            workers: $given('workers') === 'auto' ? (new Processors())->available() : Quantity::positive('workers', $given('workers')),
            maxRequests: Quantity::positive('max-requests', $option('max-requests')),
            maxMemory: Quantity::memory('max-memory', $option('max-memory')),
            maxAge: Quantity::duration('max-age', $option('max-age')),
            hangTimeout: $hang !== null && $hang > 0.0 ? $hang : null,
            blockWarning: $block > 0.0 ? $block : null,
            startTimeout: Quantity::duration('start-timeout', $given('start-timeout')),
            drainTimeout: Quantity::duration('drain-timeout', $given('drain-timeout')),
            maxCrashes: Quantity::positive('max-crashes', $given('max-crashes')),
            watch: self::watched($input, $file),
            metrics: self::metrics($option('metrics')),
            pidFile: Quantity::text('pid-file', $option('pid-file')),
            environment: $environment,
            application: $file,
            advice: ServingAdvice::of($file),
        );
    }

    private static function metrics(?string $given): ?string
    {
        $address = Quantity::text('metrics', $given);
        try {
            return $address === null ? null : MetricsAddress::checked($address);
        } catch (InvalidAddressError $refused) {
            throw new InvalidOptionException("--metrics: {$refused->getMessage()}", previous: $refused);
        }
    }

    /** @return list<string> */
    private static function watched(InputInterface $input, string $application): array
    {
        /** @var list<string> $given */
        $given = $input->getOption('watch-path');
        $paths = [];
        foreach ($given as $path) {
            // Of an empty path realpath() makes the current directory.
            $paths[] = \realpath((string) Quantity::text('watch-path', $path)) ?: throw new InvalidOptionException("--watch-path is \"$path\": no such file or directory");
        }

        return $input->getOption('watch') ? [self::project($application), ...$paths] : $paths;
    }

    /** The directory of the file, or the one above it with a composer.json: a front controller is in `public` of its project. */
    private static function project(string $application): string
    {
        $directory = \dirname((string) \realpath($application));
        $above = \dirname($directory);

        return !\is_file("$directory/composer.json") && \is_file("$above/composer.json") ? $above : $directory;
    }

    private static function complain(OutputInterface $output, string $message): void
    {
        $errors = $output instanceof ConsoleOutputInterface ? $output->getErrorOutput() : $output;
        $errors->writeln("weft run: $message", OutputInterface::OUTPUT_RAW | OutputInterface::VERBOSITY_QUIET);
    }
}
