<?php

declare(strict_types=1);

namespace Weft\Http;

/** A certificate and its key, in files that are read when the server starts and when it reloads. */
final class Certificate
{
    /**
     * @param string $certFile PEM: the certificate and those that lead to its authority
     * @param string $keyFile PEM
     */
    public function __construct(public readonly string $certFile, public readonly string $keyFile)
    {
    }
}
