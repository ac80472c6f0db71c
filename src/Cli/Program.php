<?php

declare(strict_types=1);

namespace Weft\Cli;

use Symfony\Component\Console\Application;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Exception\ExceptionInterface as ConsoleException;
use Symfony\Component\Console\Input\ArrayInput;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Output\ConsoleOutputInterface;
use Symfony\Component\Console\Output\OutputInterface;
use Weft\Cli\Internal\PrintableFormatter;
use Weft\Exception as WeftException;
use Weft\Internal\ErrorDocumentation;
use Weft\Internal\LoadedExtension;
use Weft\Internal\Printable;
use Weft\Version;

/** The program `weft` with all its commands. */
final class Program extends Application
{
    public function __construct()
    {
        parent::__construct('Weft', self::version());
        $this->addCommands([
            new DoctorCommand(),
            new ExplainCommand(),
            new RunCommand(),
            new NewCommand(),
            new GenerateProtoCommand(),
            new RoutesCommand(),
            new OpenApiCommand(),
            new StateCheckCommand(),
            new Bus\ConsumeCommand(),
            new Bus\HandlersCommand(),
            new Bus\QueuesCommand(),
            new Bus\QueuesPauseCommand(),
            new Bus\QueuesResumeCommand(),
            new Bus\SetupCommand(),
            new Bus\KeysCommand(),
            new Bus\KeysReleaseCommand(),
            new Bus\SchemaCheckCommand(),
            new Bus\SagasListCommand(),
            new Bus\SagasReopenCommand(),
            new Bus\SagasShowCommand(),
            new Bus\DeadListCommand(),
            new Bus\DeadShowCommand(),
            new Bus\DeadRetryCommand(),
            new Bus\DeadEditCommand(),
            new Bus\DeadDeleteCommand(),
        ]);
    }

    /**
     * Symfony catches exceptions, and ends with 1 also where the command line is wrong. A mistake in the user's file is an \Error of Weft,
     * whose message says as much.
     */
    public function doRun(InputInterface $input, OutputInterface $output): int
    {
        try {
            return parent::doRun($this->asksForCommands($input) ? new ArrayInput(['command' => 'list']) : $input, $output);
        } catch (\Error | ConsoleException $error) {
            if (!$this->areExceptionsCaught() || !$error instanceof WeftException && !$error instanceof ConsoleException) {
                throw $error;
            }
            $this->renderThrowable($error, $output instanceof ConsoleOutputInterface ? $output->getErrorOutput() : $output);

            return $error instanceof ConsoleException ? Command::INVALID : Command::FAILURE;
        }
    }

    /** `weft --help`, for which Symfony prints the help of its command `list`. */
    private function asksForCommands(InputInterface $input): bool
    {
        return $this->getCommandName($input) === null && $input->hasParameterOption(['--help', '-h'], true) && !$input->hasParameterOption(['--version', '-V'], true);
    }

    protected function doRunCommand(Command $command, InputInterface $input, OutputInterface $output): int
    {
        if (self::needsExtension($command)) {
            \extension_loaded('weft') || throw new ExtensionMissingException($command->getName() ?? $command::class);
            // Here, so that `weft run` starts no worker that fails for it again and again.
            $problem = LoadedExtension::problem();
            $problem === null || throw new ExtensionMismatchException($problem);
        }

        return parent::doRunCommand($command, $input, $output);
    }

    /** Exceptions of Weft are shown as their message, the user's line and where to read about them; `-v` shows their stack. */
    public function renderThrowable(\Throwable $e, OutputInterface $output): void
    {
        if ($e instanceof WeftException && !$output->isVerbose()) {
            $documentation = ErrorDocumentation::of($e);
            $place = self::placeOf($e);
            $at = $place === null ? '' : "\nAt: {$place}";
            $help = $documentation === null ? '' : "\nHelp: {$documentation->location()}";
            $output->writeln(Printable::text("weft: {$e->getMessage()}{$at}{$help}"), OutputInterface::OUTPUT_RAW | OutputInterface::VERBOSITY_QUIET);

            return;
        }
        $formatter = $output->getFormatter();
        $output->setFormatter(new PrintableFormatter($formatter));
        parent::renderThrowable($e, $output);
        $output->setFormatter($formatter);
    }

    /** The innermost line of the user's file that a command has loaded, null if the command itself failed. */
    private static function placeOf(\Throwable $e): ?string
    {
        $library = \dirname(__DIR__) . '/';
        foreach ([['file' => $e->getFile(), 'line' => $e->getLine()], ...$e->getTrace()] as $frame) {
            $file = $frame['file'] ?? $library;
            if (\str_starts_with($file, __DIR__ . '/')) {
                return null;
            }
            if (!\str_starts_with($file, $library)) {
                return "{$file}:{$frame['line']}";
            }
        }

        return null;
    }

    private static function needsExtension(Command $command): bool
    {
        return \str_starts_with($command::class, __NAMESPACE__ . '\\') && !\in_array($command::class, [DoctorCommand::class, ExplainCommand::class, NewCommand::class], true);
    }

    private static function version(): string
    {
        $extension = Version::extension();

        return \sprintf(
            '%s (extension %s, PHP %s)',
            Version::LIBRARY,
            $extension ?? 'not loaded',
            \PHP_VERSION,
        );
    }
}
