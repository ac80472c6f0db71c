<?php

declare(strict_types=1);

namespace Weft\Cli;

use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Exception\InvalidArgumentException;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Input\InputOption;
use Symfony\Component\Console\Output\OutputInterface;
use Weft\Internal\Inspection;

/** `weft openapi`: prints the OpenAPI document of an application. */
#[AsCommand(name: 'openapi', description: 'Print the OpenAPI 3.1 document of an application')]
final class OpenApiCommand extends Command
{
    protected function configure(): void
    {
        $this->addArgument('file', InputArgument::REQUIRED, 'PHP file that runs a Weft\App, or returns one or a Weft\Http\Router')
            ->addOption('address', null, InputOption::VALUE_REQUIRED, 'Address of the router, if the application has several');
        $this->setHelp('The file is executed, but its servers do not start. Title and version are those of Router::openApi().');
    }

    protected function execute(InputInterface $input, OutputInterface $output): int
    {
        try {
            $routers = Inspection::routers($input->getArgument('file'));
        } catch (\InvalidArgumentException $error) {
            throw new ApplicationFileException($error->getMessage(), previous: $error);
        }
        $address = $input->getOption('address');
        if ($address === null && \count($routers) > 1) {
            throw new InvalidArgumentException('The application has several routers; --address must be one of: ' . \implode(', ', \array_keys($routers)));
        }
        $router = $address === null ? \reset($routers) : ($routers[$address] ?? false);
        if ($router === false) {
            throw new InvalidArgumentException('The application has ' . ($routers === [] ? 'no router.' : "no router at {$address}, only at: " . \implode(', ', \array_keys($routers))));
        }
        $output->write($router->openApiDocument(), false, OutputInterface::OUTPUT_RAW);

        return self::SUCCESS;
    }
}
