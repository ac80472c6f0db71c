<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Consuming;

use Weft\Bus\Header;
use Weft\Bus\Internal\ExceptionChain;
use Weft\Bus\ListenersFailedException;
use Weft\Bus\Retry;
use Weft\Bus\Transport\Delivery;

/**
 * Why a message could not be handled, as recorded in its dead letter.
 *
 * @internal
 */
final class HandlingFailedException extends \Exception
{
    private const CLASS_BYTES = 500;
    private const MESSAGE_BYTES = 2_000;
    private const STACK_BYTES = 8_000;

    /**
     * @param list<string> $handlers which failed
     * @param int          $calls    how often the handler was called this time
     * @param Retry|null   $retry    null when there is no point in trying again
     * @param list<self>   $parts    one for each handler, where several failed
     */
    public function __construct(
        public readonly \Throwable $error,
        public readonly array $handlers = [],
        public readonly int $calls = 1,
        public readonly ?Retry $retry = null,
        private readonly array $parts = [],
    ) {
        parent::__construct($error->getMessage(), previous: $error);
    }

    /**
     * @param non-empty-list<self> $failed
     * @param int                  $of     how many listeners there are
     */
    public static function together(array $failed, int $of = 0): self
    {
        if (\count($failed) === 1) {
            return $failed[0];
        }
        $names = \array_merge(...\array_map(static fn(self $failure): array => $failure->handlers, $failed));
        $first = $failed[0]->error;
        $error = new ListenersFailedException(\count($failed) . " of {$of} listeners failed: " . \implode(', ', $names) . "; first: {$first->getMessage()}", $first);

        return new self($error, $names, \max(\array_map(static fn(self $failure): int => $failure->calls, $failed)), parts: $failed);
    }

    /** For the log: class, message and place. */
    public function description(): string
    {
        return $this->error::class . ": {$this->error->getMessage()} at {$this->error->getFile()}:{$this->error->getLine()}";
    }

    /** @return non-empty-list<self> one for each handler */
    public function parts(): array
    {
        return $this->parts === [] ? [$this] : $this->parts;
    }

    /** The number of failed attempts so far. */
    public function attempts(Delivery $delivery): int
    {
        return $this->calls + (int) ($delivery->headers[Header::ATTEMPTS] ?? 0);
    }

    /** @return array<string, string> */
    public function errorHeaders(): array
    {
        return [
            Header::ERROR_CLASS => self::cut($this->error::class, self::CLASS_BYTES),
            Header::ERROR_MESSAGE => self::cut($this->error->getMessage(), self::MESSAGE_BYTES),
        ];
    }

    /** @return array<string, string> */
    public function headers(Delivery $delivery, string $queue): array
    {
        return $this->errorHeaders() + [
            Header::ERROR_STACK => self::cut($this->stack(), self::STACK_BYTES),
            // One that fails before a handler is reached stays a message for the listeners that it came back for.
            Header::FAILED_HANDLER => $this->handlers === [] ? $delivery->headers[Header::FAILED_HANDLER] ?? '' : \implode(', ', $this->handlers),
            Header::FAILED_AT => (new \DateTimeImmutable('now', new \DateTimeZone('UTC')))->format('Y-m-d\TH:i:s.up'),
            Header::FAILED_QUEUE => $queue,
            Header::ATTEMPTS => (string) $this->attempts($delivery),
        ] + $delivery->headers;
    }

    private function stack(): string
    {
        $stack = '';
        foreach (ExceptionChain::of($this->error) as $error) {
            if (\strlen($stack) > self::STACK_BYTES) {
                break;
            }
            $cause = $stack === '' ? '' : 'caused by ' . $error::class . ": {$error->getMessage()}\n";
            $stack .= "{$cause}{$error->getFile()}:{$error->getLine()}\n" . self::frames($error);
        }

        return $stack;
    }

    /** The stack down to the handler, without arguments. The frames below belong to the bus and are always the same. */
    private static function frames(\Throwable $error): string
    {
        $frames = '';
        foreach ($error->getTrace() as $frame) {
            $call = '  ' . ($frame['class'] ?? '') . ($frame['type'] ?? '') . $frame['function'] . '()';
            if (\str_starts_with($frame['file'] ?? '', \dirname(__DIR__))) {
                return "{$frames}{$call}\n";
            }
            $frames .= $call . (isset($frame['file']) ? " at {$frame['file']}:{$frame['line']}" : '') . "\n";
        }

        return $frames;
    }

    /** Headers must be valid text for every broker: invalid UTF-8 is replaced. */
    private static function cut(string $text, int $bytes): string
    {
        // One more character, so that a character cut in half is not taken for invalid bytes.
        return \mb_strcut(\mb_scrub(\substr($text, 0, $bytes + 4), 'UTF-8'), 0, $bytes, 'UTF-8');
    }
}
