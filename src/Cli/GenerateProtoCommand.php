<?php

declare(strict_types=1);

namespace Weft\Cli;

use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Input\InputOption;
use Symfony\Component\Console\Output\OutputInterface;
use Weft\Cli\Internal\ProtoGeneration;
use Weft\Cli\Internal\ProtoGenerationException;

/** `weft proto:generate`: generates PHP classes from .proto files. */
#[AsCommand(name: 'proto:generate', description: 'Generate PHP classes, service interfaces and clients from .proto files')]
final class GenerateProtoCommand extends Command
{
    protected function configure(): void
    {
        $this->addArgument('files', InputArgument::REQUIRED | InputArgument::IS_ARRAY, '.proto files')
            ->addOption('out', 'o', InputOption::VALUE_REQUIRED, 'Directory for the classes; created if it does not exist')
            ->addOption('psr4', null, InputOption::VALUE_REQUIRED, 'Namespace of this directory; by default the root namespace', '')
            ->addOption('proto-path', 'I', InputOption::VALUE_REQUIRED | InputOption::VALUE_IS_ARRAY, 'Directory to search for imports; by default the current one', ['.'])
            ->setHelp(<<<'TEXT'
                Runs protoc, which must be on the PATH (Debian: <info>apt install protobuf-compiler libprotobuf-dev</info>), or is named by the
                environment variable PROTOC, with bin/protoc-gen-weft as its plugin.

                <info>weft proto:generate api/*.proto --out src/Generated --psr4 'App\Generated'</info>

                writes the class App\Generated\Api\User to src/Generated/Api/User.php where the file has the option
                php_namespace = "App\\Generated\\Api"; without it the namespace comes from its package.
                TEXT);
    }

    protected function execute(InputInterface $input, OutputInterface $output): int
    {
        $out = $input->getOption('out');
        if ($out === null) {
            $output->writeln('<error>--out is required: the directory for the classes</error>');
            return self::INVALID;
        }
        try {
            [$count, $notes] = (new ProtoGeneration($input->getOption('proto-path'), $out, $input->getOption('psr4')))->run($input->getArgument('files'));
        } catch (ProtoGenerationException $e) {
            $output->writeln($e->getMessage(), OutputInterface::OUTPUT_RAW);
            return self::FAILURE;
        }
        $output->writeln(["{$count} classes in {$out}", ...$notes], OutputInterface::OUTPUT_RAW);

        return self::SUCCESS;
    }
}
