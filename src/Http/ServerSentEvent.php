<?php

declare(strict_types=1);

namespace Weft\Http;

use Weft\Internal\Number;

/** A server-sent event (HTML §9.2), see `Response::events()`. */
final class ServerSentEvent implements \Stringable
{
    /**
     * @param string $data UTF-8; the client receives every line break as `\n`
     * @param string $event the event type for `addEventListener()`; empty is `message`
     * @param string|null $id the client sends it as `Last-Event-ID` when it reconnects; an empty id resets it
     * @param float|null $retry seconds after which the client reconnects when the stream ends, 0 to 1,000,000,000; null leaves it to the client
     *
     * @throws \ValueError a type or an id has a line break or a zero byte, the data is not UTF-8, or `$retry` is out of range
     */
    public function __construct(
        public readonly string $data,
        public readonly string $event = '',
        public readonly ?string $id = null,
        public readonly ?float $retry = null,
    ) {
        foreach (['type' => $event, 'id' => $id ?? ''] as $what => $value) {
            if (\strpbrk($value, "\r\n") !== false || \str_contains($value, "\0") || \preg_match('//u', $value) !== 1) {
                throw new \ValueError("The $what of an event is UTF-8 without line breaks and zero bytes, got " . (string) \json_encode($value, \JSON_INVALID_UTF8_SUBSTITUTE));
            }
        }
        if (\preg_match('//u', $data) !== 1) {
            throw new \ValueError('The data of an event is UTF-8: encode other bytes, for example with base64_encode()');
        }
        if ($retry !== null && !($retry >= 0.0 && $retry <= 1e9)) {
            throw new \ValueError('The retry of an event must be 0 to 1,000,000,000 seconds, got ' . Number::text($retry));
        }
    }

    /** The event in the format of the stream. */
    public function __toString(): string
    {
        return ($this->id === null ? '' : "id: $this->id\n")
            . ($this->event === '' ? '' : "event: $this->event\n")
            . ($this->retry === null ? '' : 'retry: ' . (int) \round($this->retry * 1000) . "\n")
            . 'data: ' . (string) \preg_replace('/\r\n|\r|\n/', "\ndata: ", $this->data) . "\n\n";
    }
}
