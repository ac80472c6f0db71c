<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

/** An authority of the test's own, in a directory of its own. */
final class Certificates
{
    public readonly string $directory;

    public function __construct()
    {
        $this->directory = sys_get_temp_dir() . '/weft-tls-' . bin2hex(random_bytes(6));
        mkdir($this->directory);
        $this->openssl('req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=authority -keyout ca.key -out ca.crt -addext basicConstraints=critical,CA:TRUE');
    }

    /** Makes NAME.crt and NAME.key for a host. */
    public function issue(string $name, string $host): void
    {
        file_put_contents("$this->directory/$name.ext", "basicConstraints=CA:FALSE\nsubjectAltName=DNS:$host\n");
        $this->openssl("req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=$name -keyout $name.key -out $name.csr");
        $this->openssl("x509 -req -days 2 -in $name.csr -CA ca.crt -CAkey ca.key -CAcreateserial -extfile $name.ext -out $name.crt");
    }

    public function php(string $name): string
    {
        return "new Certificate('$this->directory/$name.crt', '$this->directory/$name.key')";
    }

    public function remove(): void
    {
        array_map(unlink(...), glob("$this->directory/*") ?: []);
        rmdir($this->directory);
    }

    private function openssl(string $arguments): void
    {
        exec('cd ' . escapeshellarg($this->directory) . " && openssl $arguments 2>&1", $output, $code);
        if ($code !== 0) {
            throw new \RuntimeException("openssl $arguments: " . implode("\n", $output));
        }
    }
}
