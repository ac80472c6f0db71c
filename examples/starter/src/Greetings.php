<?php

declare(strict_types=1);

namespace App;

use Weft\Bus\CommandHandler;
use Weft\Bus\Context;
use Weft\Sql\Transaction;

final class Greetings
{
    /** The row and the event are one transaction; a message that arrives twice has its effect once. */
    #[CommandHandler]
    public function greet(Greet $command, Transaction $transaction, Context $context): void
    {
        $transaction->execute('INSERT INTO greetings (id, text) VALUES (?, ?)', [$command->id, "Hello, {$command->name}!"]);
        $context->publish(new Greeted($command->id, $command->name));
    }
}
