<?php

declare(strict_types=1);

namespace Weft\Tests\Hooks\Support;

use Weft\Runtime\Task;
use Weft\Tests\Http\Certificates;
use Weft\Tests\Http\Directory;
use Weft\Tests\Timing;

use function Weft\async;

/** OpenLDAP's server. It has no entries of its own: a task of the test answers its searches, once enough of them wait. */
final class Slapd
{
    private const PROGRAM = '/usr/sbin/slapd';
    private const MODULES = '/usr/lib/ldap';

    public readonly int $port;
    private readonly Directory $directory;
    /** @var resource */
    private $process;

    public static function isInstalled(): bool
    {
        return \is_executable(self::PROGRAM) && \is_file(self::MODULES . '/back_sock.la');
    }

    public function __construct(Certificates $certificates)
    {
        $this->directory = new Directory();
        $probe = \stream_socket_server('tcp://127.0.0.1:0');
        $this->port = (int) \substr((string) \strrchr((string) \stream_socket_get_name($probe, false), ':'), 1);
        \fclose($probe);
        $configuration = $this->directory->write('slapd.conf', \implode("\n", [
            'include /etc/ldap/schema/core.schema',
            'modulepath ' . self::MODULES,
            'moduleload back_sock',
            "TLSCertificateFile {$certificates->directory}/server.crt",
            "TLSCertificateKeyFile {$certificates->directory}/server.key",
            'database sock',
            'suffix dc=weft',
            "socketpath {$this->directory->path}/answers",
            '',
        ]));
        $log = ['file', "{$this->directory->path}/log", 'w'];
        $this->process = \proc_open([self::PROGRAM, '-h', "ldap://127.0.0.1:$this->port", '-f', $configuration, '-d', '0'], [['file', '/dev/null', 'r'], $log, $log], $pipes)
            ?: throw new \RuntimeException(self::PROGRAM . ' does not start');
        try {
            Timing::until(fn(): bool => @\stream_socket_client("tcp://127.0.0.1:$this->port") !== false, "slapd accepts on port $this->port: " . \file_get_contents($log[1]));
        } catch (\Throwable $failure) {
            // An object whose constructor throws is not destructed.
            $this->__destruct();
            throw $failure;
        }
    }

    /** Answers each search with one entry named `ok`, once `$gathering` lets it. */
    public function answerSearches(Gathering $gathering): Task
    {
        @\unlink("{$this->directory->path}/answers");
        $server = \stream_socket_server("unix://{$this->directory->path}/answers");

        return async(static function () use ($server, $gathering): void {
            while (($request = \stream_socket_accept($server, 86_400.0)) !== false) {
                async(static function () use ($request, $gathering): void {
                    $operation = \trim((string) \fgets($request));
                    while (\trim((string) \fgets($request)) !== '') {
                    }
                    if ($operation === 'SEARCH') {
                        $gathering->wait();
                        \fwrite($request, "dn: cn=ok,dc=weft\nobjectClass: device\ncn: ok\n\nRESULT\ncode: 0\n\n");
                    }
                    \fclose($request);
                });
            }
        });
    }

    public function __destruct()
    {
        \proc_terminate($this->process);
        \proc_close($this->process);
        $this->directory->remove();
    }
}
