<?php

declare(strict_types=1);

namespace Weft\Http;

/**
 * A cookie to set (RFC 6265bis §4.1). By default it is `Secure`, `HttpOnly` and `SameSite=Lax`.
 *
 * Chromium and Firefox accept `Secure` cookies from `http://localhost`. In development with Safari, or over plain HTTP under another
 * name, set `secure: false`.
 */
final class Cookie implements \Stringable
{
    /** The limits of browsers in bytes: of name and value together (§5.7), and of an attribute (§5.6). */
    private const MAX_BYTES = 4_096;
    private const ATTRIBUTE_BYTES = 1_024;

    /**
     * @param string $name a token (RFC 9110 §5.6.2). `__Secure-…` must be secure; `__Host-…` must be, with the path `/` and without
     *     a domain.
     * @param string $value any bytes, sent percent-encoded; with the name 4,096 bytes at most
     * @param int|null $maxAge seconds, at least 0; 0 deletes the cookie, null makes it a session cookie
     * @param string $path begins with `/`; printable ASCII without `;`, 1,024 bytes at most
     * @param string|null $domain a host name; the cookie is sent to this host and its subdomains. Null limits it to the host that sets it.
     * @param bool $secure only over TLS
     * @param bool $httpOnly scripts cannot read it
     * @param SameSite $sameSite which requests of other sites carry it
     *
     * @throws \ValueError an argument is out of its bounds, or `SameSite::None` without `secure`
     */
    public function __construct(
        public readonly string $name,
        public readonly string $value,
        public readonly ?int $maxAge = null,
        public readonly string $path = '/',
        public readonly ?string $domain = null,
        public readonly bool $secure = true,
        public readonly bool $httpOnly = true,
        public readonly SameSite $sameSite = SameSite::Lax,
    ) {
        self::checkName($name, $value);
        self::checkPath($name, $path);
        if ($domain !== null) {
            self::checkDomain($name, $domain);
        }
        if ($maxAge !== null && $maxAge < 0) {
            throw new \ValueError("The cookie \"$name\" has a maxAge of $maxAge: it must be at least 0 seconds");
        }
        $this->checkSecurity();
    }

    public function __toString(): string
    {
        return $this->name . '=' . \rawurlencode($this->value)
            . ($this->maxAge === null ? '' : "; Max-Age=$this->maxAge")
            . "; Path=$this->path"
            . ($this->domain === null ? '' : "; Domain=$this->domain")
            . ($this->secure ? '; Secure' : '')
            . ($this->httpOnly ? '; HttpOnly' : '')
            . "; SameSite={$this->sameSite->value}";
    }

    private static function checkName(string $name, string $value): void
    {
        if (\preg_match('/^[!#$%&\'*+\-.^_`|~0-9A-Za-z]+$/D', $name) !== 1) {
            throw new \ValueError(self::quoted($name) . ' is not the name of a cookie: letters, digits and !#$%&\'*+-.^_`|~');
        }
        $bytes = \strlen($name) + \strlen(\rawurlencode($value));
        if ($bytes > self::MAX_BYTES) {
            throw new \ValueError('The cookie ' . self::quoted($name) . " has $bytes bytes of name and percent-encoded value, more than the " . self::MAX_BYTES . ' that browsers take');
        }
    }

    private static function checkPath(string $name, string $path): void
    {
        if (\preg_match('~^/[\x20-\x3a\x3c-\x7e]*$~D', $path) !== 1 || \strlen($path) > self::ATTRIBUTE_BYTES) {
            throw new \ValueError("The cookie \"$name\" has the path " . self::quoted($path) . ': it begins with "/" and has printable ASCII without ";", 1,024 bytes at most');
        }
    }

    private static function checkDomain(string $name, string $domain): void
    {
        if (\preg_match('/^(?=.{1,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/Di', $domain) !== 1) {
            throw new \ValueError("The cookie \"$name\" has the domain " . self::quoted($domain) . ': it is a host name such as "example.org", other alphabets as Punycode');
        }
    }

    private function checkSecurity(): void
    {
        $reason = match (true) {
            $this->secure => null,
            $this->sameSite === SameSite::None => 'SameSite::None',
            \stripos($this->name, '__Secure-') === 0 => 'the prefix __Secure-',
            \stripos($this->name, '__Host-') === 0 => 'the prefix __Host-',
            default => null,
        };
        if ($reason !== null) {
            throw new \ValueError("The cookie \"$this->name\" has $reason and must be secure, or browsers drop it");
        }
        if (\stripos($this->name, '__Host-') === 0 && ($this->path !== '/' || $this->domain !== null)) {
            throw new \ValueError("The cookie \"$this->name\" has the prefix __Host- and must have the path \"/\" and no domain, or browsers drop it");
        }
    }

    private static function quoted(string $text): string
    {
        return (string) \json_encode(\substr($text, 0, 100), \JSON_INVALID_UTF8_SUBSTITUTE | \JSON_UNESCAPED_SLASHES);
    }
}
