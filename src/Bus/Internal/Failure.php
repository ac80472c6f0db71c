<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

use Weft\Bus\Header;
use Weft\Bus\Transport\Delivery;

/**
 * Why a message could not be handled, as its dead letter says it.
 *
 * @internal
 */
final class Failure extends \Exception
{
    private const MESSAGE_BYTES = 2_000;
    private const STACK_BYTES = 8_000;

    /** @param list<string> $handlers which failed */
    public function __construct(
        public readonly \Throwable $error,
        public readonly array $handlers = [],
    ) {
        parent::__construct($error->getMessage(), previous: $error);
    }

    /** @return array<string, string> */
    public function headers(Delivery $delivery, string $queue): array
    {
        return [
            Header::ERROR_CLASS => $this->error::class,
            Header::ERROR_MESSAGE => self::cut($this->error->getMessage(), self::MESSAGE_BYTES),
            Header::ERROR_STACK => self::cut($this->stack(), self::STACK_BYTES),
            Header::FAILED_HANDLER => \implode(', ', $this->handlers),
            Header::FAILED_AT => (new \DateTimeImmutable('now', new \DateTimeZone('UTC')))->format('Y-m-d\TH:i:s.up'),
            Header::FAILED_QUEUE => $queue,
            Header::ATTEMPTS => (string) (1 + (int) ($delivery->headers[Header::ATTEMPTS] ?? 0)),
        ] + $delivery->headers;
    }

    private function stack(): string
    {
        $stack = '';
        for ($error = $this->error; $error !== null; $error = $error->getPrevious()) {
            $cause = $stack === '' ? '' : 'caused by ' . $error::class . ": {$error->getMessage()}\n";
            $stack .= "{$cause}{$error->getFile()}:{$error->getLine()}\n" . self::frames($error);
        }

        return $stack;
    }

    /** The calls down to the handler, without arguments; what lies below is the bus and the same for all. */
    private static function frames(\Throwable $error): string
    {
        $frames = '';
        foreach ($error->getTrace() as $frame) {
            $call = '  ' . ($frame['class'] ?? '') . ($frame['type'] ?? '') . $frame['function'] . '()';
            if (\str_starts_with($frame['file'] ?? '', __DIR__)) {
                return "{$frames}{$call}\n";
            }
            $frames .= $call . (isset($frame['file']) ? " at {$frame['file']}:{$frame['line']}" : '') . "\n";
        }

        return $frames;
    }

    /** Headers are text for every broker: bytes that are no UTF-8 are replaced. */
    private static function cut(string $text, int $bytes): string
    {
        return \mb_strcut(\mb_scrub($text, 'UTF-8'), 0, $bytes, 'UTF-8');
    }
}
