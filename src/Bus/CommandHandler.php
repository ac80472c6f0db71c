<?php

declare(strict_types=1);

namespace Weft\Bus;

/**
 * Marks a public method as the handler of the command class that is the type of its first parameter.
 *
 * Further parameters are resolved by type: {@see Context}, `Weft\Sql\Transaction`, `Weft\Sql\Database`, `Psr\Log\LoggerInterface`, and
 * every service of the container passed to {@see Bus::connect()}. A method with a Transaction parameter runs in a transaction, which
 * commits when the method returns and rolls back when it throws.
 *
 * ```php
 * #[CommandHandler]
 * public function store(StoreCustomer $command, Transaction $transaction, Context $context): void
 * {
 *     $transaction->execute('INSERT INTO customers (id, name) VALUES (?, ?)', [$command->id, $command->name]);
 *     $context->publish(new CustomerStored($command->id));
 * }
 * ```
 */
#[\Attribute(\Attribute::TARGET_METHOD)]
final class CommandHandler {}
