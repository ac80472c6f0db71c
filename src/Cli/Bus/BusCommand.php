<?php

declare(strict_types=1);

namespace Weft\Cli\Bus;

use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Exception\InvalidArgumentException;
use Symfony\Component\Console\Formatter\OutputFormatter;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Output\OutputInterface;
use Weft\Bus\Bus;
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
            $bus = self::load($input->getArgument('file'));
            try {
                return $this->work($bus, $input, $output);
            } finally {
                $bus->close();
            }
        });
    }

    /** @return int the exit code */
    abstract protected function work(Bus $bus, InputInterface $input, OutputInterface $output): int;

    /** Foreign text for a table or a line with tags of the console. */
    public static function cell(string $text): string
    {
        return OutputFormatter::escape(Printable::line($text));
    }

    /** The return value of a PHP file, or of the closure that it returns. */
    public static function evaluate(string $file): mixed
    {
        if (!\is_file($file)) {
            throw new InvalidArgumentException("There is no file {$file}.");
        }
        $returned = (static fn(): mixed => require $file)();

        return $returned instanceof \Closure && !self::takesArguments($returned) ? $returned() : $returned;
    }

    public static function describe(mixed $returned): string
    {
        return match (true) {
            $returned === 1 => 'nothing',
            $returned instanceof \Closure && self::takesArguments($returned) => 'a closure that takes arguments',
            default => \get_debug_type($returned),
        };
    }

    private static function takesArguments(\Closure $closure): bool
    {
        return (new \ReflectionFunction($closure))->getNumberOfRequiredParameters() > 0;
    }

    private static function load(string $file): Bus
    {
        $bus = self::evaluate($file);

        return $bus instanceof Bus ? $bus : throw new InvalidArgumentException("{$file} must return a " . Bus::class . ' or a closure that makes one, it returned ' . self::describe($bus) . '.');
    }
}
