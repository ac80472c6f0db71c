<?php

declare(strict_types=1);

namespace Weft\Http;

/** A fault of one value of a request. */
final class Fault implements \JsonSerializable
{
    private function __construct(
        /** `body`, `query` or `header` */
        public readonly string $in,
        /** For the client to read. It repeats no value of the request. */
        public readonly string $detail,
        /** The JSON pointer of the value in the body as a URI fragment (RFC 6901 §6), such as `#/items/2/price`; null outside of a body. */
        public readonly ?string $pointer = null,
        /** The name of the query parameter or header field; null in a body. */
        public readonly ?string $name = null,
    ) {
    }

    /** @param string $pointer RFC 6901, not encoded for a URI; empty for the whole body */
    public static function inBody(string $pointer, string $detail): self
    {
        return new self('body', $detail, pointer: '#' . \str_replace('%2F', '/', \rawurlencode($pointer)));
    }

    public static function inQuery(string $name, string $detail): self
    {
        return new self('query', $detail, name: $name);
    }

    public static function inHeader(string $name, string $detail): self
    {
        return new self('header', $detail, name: $name);
    }

    public function __toString(): string
    {
        return "$this->in {$this->place()}: $this->detail";
    }

    /** @return array<string, string> */
    public function jsonSerialize(): array
    {
        return ['in' => $this->in, $this->pointer === null ? 'name' : 'pointer' => $this->place(), 'detail' => $this->detail];
    }

    private function place(): string
    {
        return $this->pointer ?? (string) $this->name;
    }
}
