<?php

declare(strict_types=1);

namespace Weft\Cli\Bus;

use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\Console\Helper\Table;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Output\OutputInterface;
use Weft\Bus\Bus;

/** `weft keys`: what is held up because a message of its key has failed. */
#[AsCommand(name: 'keys', description: 'Show keys of ordered messages that are blocked, and how many messages wait behind each')]
final class KeysCommand extends BusCommand
{
    protected function configure(): void
    {
        parent::configure();
        $this->addArgument('queue', InputArgument::REQUIRED, 'Name of the queue');
    }

    protected function work(Bus $bus, InputInterface $input, OutputInterface $output): int
    {
        $queue = self::queue($bus, $input);
        // An undeclared one, whose name may be misspelt, has no blocked keys.
        $queue->depth();
        $table = new Table($output);
        $table->setHeaders(['key', 'blocked by', 'since', 'waiting', 'released']);
        foreach ($queue->blockedKeys() as $key) {
            $table->addRow([self::cell($key->key), self::cell($key->messageId), $key->since->format(\DATE_ATOM), $key->waiting, $key->released ? 'yes' : 'no']);
        }
        $table->render();

        return self::SUCCESS;
    }
}
