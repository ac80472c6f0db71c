<?php

declare(strict_types=1);

namespace Weft\Grpc\Client;

/** What a channel trusts and shows. */
final class Tls
{
    /**
     * @param string|null $caFile trusted authorities, PEM; null are those of the operating system
     * @param string|null $certFile the client's own certificate, PEM, with its key in `$keyFile`, for servers that ask for one
     * @param string|null $serverName the name the certificate must carry, instead of the host's
     * @param bool $verify false takes any certificate: for tests
     */
    public function __construct(
        public readonly ?string $caFile = null,
        public readonly ?string $certFile = null,
        public readonly ?string $keyFile = null,
        public readonly ?string $serverName = null,
        public readonly bool $verify = true,
    ) {
        if (($certFile === null) !== ($keyFile === null)) {
            throw new \ValueError('A certificate needs its key and a key its certificate: give both or none');
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
