<?php

declare(strict_types=1);

namespace Weft\Grpc\Client;

/** TLS of a channel: trusted authorities and the client certificate. */
final class Tls
{
    /**
     * @param string|null $caFile trusted authorities, PEM; null uses those of the operating system
     * @param string|null $certFile the client certificate, PEM, with its key in `$keyFile`
     * @param string|null $keyFile the key of the client certificate, PEM
     * @param string|null $serverName the expected name in the certificate, instead of the host's
     * @param bool $verify false accepts any certificate; for tests only
     */
    public function __construct(
        public readonly ?string $caFile = null,
        public readonly ?string $certFile = null,
        public readonly ?string $keyFile = null,
        public readonly ?string $serverName = null,
        public readonly bool $verify = true,
    ) {
        if (($certFile === null) !== ($keyFile === null)) {
            throw new \ValueError('certFile and keyFile must be given together');
        }
    }

    /**
     * @internal as the extension takes it
     *
     * @return array{caFile: ?string, certFile: ?string, keyFile: ?string, serverName: ?string, verify: bool}
     */
    public function native(): array
    {
        return [
            'caFile' => $this->caFile,
            'certFile' => $this->certFile,
            'keyFile' => $this->keyFile,
            'serverName' => $this->serverName,
            'verify' => $this->verify,
        ];
    }
}
