<?php

declare(strict_types=1);

namespace Weft\Cli\Bus;

use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Output\OutputInterface;
use Weft\Bus\Bus;

/** `weft keys:release`: goes on with a key without the message that has failed. */
#[AsCommand(name: 'keys:release', description: 'Resume a blocked key without its failed message')]
final class KeysReleaseCommand extends BusCommand
{
    protected function configure(): void
    {
        parent::configure();
        $this->addArgument('queue', InputArgument::REQUIRED, 'The queue it is blocked in')
            ->addArgument('key', InputArgument::REQUIRED, 'The key, as weft keys shows it')
            ->setHelp('To continue with the failed message instead, retry it: weft dead:retry bus.php QUEUE --id=ID. Either way what waits is handled in order.');
    }

    protected function work(Bus $bus, InputInterface $input, OutputInterface $output): int
    {
        $isBlocked = self::queue($bus, $input)->releaseKey($input->getArgument('key'));
        if (!$isBlocked) {
            return self::notFound($output, "The key {$input->getArgument('key')} is not blocked.");
        }
        $output->writeln('released');

        return self::SUCCESS;
    }
}
