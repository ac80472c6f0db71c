<?php

declare(strict_types=1);

namespace Weft\Cli\Bus;

use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\Console\Helper\Table;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Output\OutputInterface;
use Weft\Bus\Bus;

/** `weft handlers`: the handlers of a bus and what applies to each. */
#[AsCommand(name: 'handlers', description: 'List handlers with their messages, retries, timeouts and transactions')]
final class HandlersCommand extends BusCommand
{
    protected function work(Bus $bus, InputInterface $input, OutputInterface $output): int
    {
        $table = new Table($output);
        $table->setHeaders(['message', 'handler', 'retries', 'timeout', 'transaction']);
        foreach ($bus->admin()->handlers() as $handler) {
            $table->addRow(\array_map(self::cell(...), \array_values($handler->columns())));
        }
        $table->render();

        return self::SUCCESS;
    }
}
