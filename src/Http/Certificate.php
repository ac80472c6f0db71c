<?php

declare(strict_types=1);

namespace Weft\Http;

/** A certificate and its key. The server reads the files when it starts and when it reloads its certificates. */
final class Certificate
{
    /**
     * @param string $certFile PEM: the certificate and its intermediate certificates
     * @param string $keyFile PEM
     */
    public function __construct(public readonly string $certFile, public readonly string $keyFile)
    {
    }
}
