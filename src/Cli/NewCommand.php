<?php

declare(strict_types=1);

namespace Weft\Cli;

use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Output\OutputInterface;
use Weft\Cli\Internal\ApplicationTemplate;

/** `weft new`: writes a small application to start from. */
#[AsCommand(name: 'new', description: 'Write a small application: HTTP, a message bus, a test, a Dockerfile and a systemd unit')]
final class NewCommand extends Command
{
    protected function configure(): void
    {
        $this->addArgument('directory', InputArgument::REQUIRED, 'Directory of the application; it is created and must be empty')
            ->setHelp(<<<'TEXT'
                The application needs no server: its queue and its tables are in one SQLite file.

                <info>vendor/bin/weft new my-app && cd my-app && composer install && vendor/bin/weft run app.php --watch</info>

                BROKER_URL=amqp://… and DATABASE_URL=postgres://… move it to RabbitMQ and PostgreSQL without a change.
                TEXT);
    }

    protected function execute(InputInterface $input, OutputInterface $output): int
    {
        $directory = ApplicationTemplate::resolved($input->getArgument('directory'));
        $template = new ApplicationTemplate(\dirname(__DIR__, 2));
        foreach ($template->writeTo($directory) as $file) {
            $output->writeln("  $file", OutputInterface::OUTPUT_RAW);
        }
        $output->writeln([
            '',
            'cd ' . self::quoted($directory),
            self::program() . ' run app.php --watch',
            'curl -i localhost:8080/greetings --json \'{"name": "Ada"}\'',
        ], OutputInterface::OUTPUT_RAW);

        return self::SUCCESS;
    }

    /** For a shell. */
    private static function quoted(string $path): string
    {
        return \preg_match('{^[\w./][\w./-]*$}D', $path) === 1 ? $path : (\str_starts_with($path, '-') ? '-- ' : '') . \escapeshellarg($path);
    }

    /** How the user calls `weft` from the new directory. */
    private static function program(): string
    {
        $argument = $_SERVER['argv'][0] ?? 'weft';

        return \str_contains($argument, '/') ? (\realpath($argument) ?: $argument) : $argument;
    }
}
