<?php

declare(strict_types=1);

namespace Weft\Internal\App;

use Psr\Log\LoggerInterface;
use Weft\Bus\Bus;

/**
 * Logs the handlers of the consumed queues as a table, a record for each row.
 *
 * @internal
 */
final class HandlerTable
{
    private const HEADER = ['message' => 'message', 'handler' => 'handler', 'retries' => 'retries', 'timeout' => 'timeout', 'transaction' => 'transaction', 'queue' => 'queue'];

    /** @var list<array{message: string, handler: string, retries: string, timeout: string, transaction: string, queue: string}> */
    private array $rows = [];

    public function add(Bus $bus, string $queue): void
    {
        foreach ($bus->admin()->handlers() as $handler) {
            $this->rows[] = $handler->columns() + ['queue' => $queue];
        }
    }

    public function log(LoggerInterface $logger): void
    {
        if ($this->rows === []) {
            return;
        }
        $rows = [self::HEADER, ...$this->rows];
        $widths = [];
        foreach ($rows as $row) {
            foreach ($row as $column => $text) {
                $widths[$column] = \max($widths[$column] ?? 0, \strlen($text));
            }
        }
        foreach ($rows as $row) {
            $padded = [];
            foreach ($row as $column => $text) {
                $padded[$column] = $column === 'queue' ? $text : \str_pad($text, $widths[$column]);
            }
            $logger->info('{message}  {handler}  {retries}  {timeout}  {transaction}  {queue}', $padded);
        }
    }
}
