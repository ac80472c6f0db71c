<?php

declare(strict_types=1);

namespace Weft\Bus;

/**
 * Marks a public method as the one handler of the command class that its first parameter names.
 *
 * Further parameters are found by type: {@see Context}, `Weft\Sql\Transaction`, `Weft\Sql\Database`,
 * `Psr\Log\LoggerInterface`, and every service of the container given to {@see Bus::connect()}.
 * With a Transaction parameter the method runs in one: committed when it returns, rolled back when it throws.
 */
#[\Attribute(\Attribute::TARGET_METHOD)]
final class CommandHandler {}
