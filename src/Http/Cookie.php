<?php

declare(strict_types=1);

namespace Weft\Http;

/** A cookie to set (RFC 6265 §4.1), safe by default: not for scripts, not for other sites. */
final class Cookie implements \Stringable
{
    /**
     * @param string $value sent percent-encoded
     * @param int|null $maxAge seconds; 0 deletes it, null keeps it until the browser is closed
     * @param string $sameSite `Lax`, `Strict` or `None`
     */
    public function __construct(
        public readonly string $name,
        public readonly string $value,
        public readonly ?int $maxAge = null,
        public readonly string $path = '/',
        public readonly ?string $domain = null,
        public readonly bool $secure = false,
        public readonly bool $httpOnly = true,
        public readonly string $sameSite = 'Lax',
    ) {
        if (\preg_match('/^[!#$%&\'*+\-.^_`|~0-9A-Za-z]+$/D', $name) !== 1) {
            throw new \ValueError("\"$name\" is no name of a cookie");
        }
    }

    public function __toString(): string
    {
        return $this->name . '=' . \rawurlencode($this->value)
            . ($this->maxAge === null ? '' : "; Max-Age=$this->maxAge")
            . "; Path=$this->path"
            . ($this->domain === null ? '' : "; Domain=$this->domain")
            . ($this->secure ? '; Secure' : '')
            . ($this->httpOnly ? '; HttpOnly' : '')
            . "; SameSite=$this->sameSite";
    }
}
