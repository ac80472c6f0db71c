<?php

declare(strict_types=1);

namespace Weft\Cli\Bus;

use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Exception\InvalidArgumentException;
use Symfony\Component\Console\Formatter\OutputFormatter;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Output\ConsoleOutputInterface;
use Symfony\Component\Console\Output\OutputInterface;
use Weft\App;
use Weft\Bus\Bus;
use Weft\Bus\Queue;
use Weft\Cli\ApplicationFileException;
use Weft\Internal\Inspection;
use Weft\Internal\Printable;

use function Weft\run;

/** A command about the bus that a PHP file of the user returns, or a closure in it. */
abstract class BusCommand extends Command
{
    protected function configure(): void
    {
        $this->addArgument('file', InputArgument::REQUIRED, 'PHP file that returns the Weft\Bus\Bus with its handlers, or a closure that makes it');
    }

    protected function execute(InputInterface $input, OutputInterface $output): int
    {
        return run(function () use ($input, $output): int {
            $bus = self::evaluate($input->getArgument('file'), Bus::class);
            try {
                return $this->work($bus, $input, $output);
            } finally {
                $bus->close();
            }
        });
    }

    /** @return int the exit code */
    abstract protected function work(Bus $bus, InputInterface $input, OutputInterface $output): int;

    /** The queue that the command line names. */
    protected static function queue(Bus $bus, InputInterface $input): Queue
    {
        return self::queueNamed($bus, $input->getArgument('queue'));
    }

    /** A name that no queue can have is a mistake in the command line. */
    public static function queueNamed(Bus $bus, string $name): Queue
    {
        try {
            return $bus->queue($name);
        } catch (\ValueError $error) {
            throw new InvalidArgumentException(Printable::line($error->getMessage()), 0, $error);
        }
    }

    /** Ends a command that has not found what it was to show or change; standard output keeps only results, which may go to a file. */
    protected static function notFound(OutputInterface $output, string $message): int
    {
        $errors = $output instanceof ConsoleOutputInterface ? $output->getErrorOutput() : $output;
        $errors->writeln(Printable::line($message), OutputInterface::OUTPUT_RAW);

        return self::FAILURE;
    }

    /** Foreign text for a table or a line with tags of the console. */
    public static function cell(string $text): string
    {
        return OutputFormatter::escape(Printable::line($text));
    }

    /**
     * The return value of a PHP file, or of the closure that it returns. An application that the file would run does not run.
     *
     * @template T of object
     *
     * @param class-string<T> ...$expected
     *
     * @return T
     *
     * @throws ApplicationFileException there is no such file, or the value is of none of the classes
     */
    public static function evaluate(string $file, string ...$expected): object
    {
        try {
            [$returned, $app] = Inspection::load($file);
        } catch (\InvalidArgumentException $error) {
            throw new ApplicationFileException($error->getMessage(), previous: $error);
        }
        foreach ($expected as $class) {
            if ($returned instanceof $class) {
                return $returned;
            }
        }
        throw new ApplicationFileException($app !== null || $returned instanceof App
            ? "{$file} runs a " . App::class . ': give the file that returns its bus.'
            : "{$file} must return a " . \implode(', a ', $expected) . ' or a closure that makes one, it returned ' . Inspection::describe($returned) . '.');
    }
}
