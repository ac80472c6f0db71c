<?php

declare(strict_types=1);

namespace Weft\Http;

/** TLS 1.2 and 1.3 for a server, with HTTP/2 and HTTP/1.1 by ALPN. */
final class Tls
{
    /** @var non-empty-list<Certificate> */
    public readonly array $certificates;

    /**
     * @param Certificate|non-empty-list<Certificate> $certificates the server presents the first one that is valid for the
     *     requested name (SNI), or else the first of all
     * @param string|null $clientCaFile PEM file of certificate authorities: the server requests a client certificate signed by one of them
     * @param bool $requireClientCertificate refuses clients without a certificate; otherwise `Request::clientCertificate()` is null for them
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
