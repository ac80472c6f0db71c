<?php

declare(strict_types=1);

namespace Weft\Http;

/** TLS 1.2 and 1.3 for a server, with HTTP/2 and HTTP/1.1 by ALPN. */
final class Tls
{
    /** @var non-empty-list<Certificate> */
    public readonly array $certificates;

    /**
     * @param Certificate|non-empty-list<Certificate> $certificates a client gets the first that is valid for the name it asks
     *     for (SNI), or else the first of all
     * @param string|null $clientCaFile PEM file of authorities; clients are asked for a certificate of one of them
     * @param bool $requireClientCertificate clients without one are refused; otherwise `Request::clientCertificate()` is null for them
     */
    public function __construct(
        Certificate|array $certificates,
        public readonly ?string $clientCaFile = null,
        public readonly bool $requireClientCertificate = true,
    ) {
        $this->certificates = \is_array($certificates) ? \array_values($certificates) : [$certificates];
        if ($this->certificates === []) {
            throw new \ValueError('TLS needs a certificate');
        }
    }
}
