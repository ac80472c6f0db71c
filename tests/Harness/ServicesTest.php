<?php

declare(strict_types=1);

namespace Weft\Tests\Harness;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

final class ServicesTest extends TestCase
{
    private string $directory;

    protected function setUp(): void
    {
        $this->directory = \sys_get_temp_dir() . '/weft-services-' . \bin2hex(\random_bytes(6));
        \mkdir($this->directory, 0o700);
    }

    protected function tearDown(): void
    {
        \exec('rm -rf ' . \escapeshellarg($this->directory));
    }

    /** The data of RabbitMQ belongs to a node of one name. */
    public function testANodeKeepsItsNameWhenItsDirectoryIsMoved(): void
    {
        $name = $this->node('before');
        self::assertMatchesRegularExpression('/^weft-\d+@localhost$/', $name);

        \rename("{$this->directory}/before", "{$this->directory}/after");

        self::assertSame($name, $this->node('after'));
        self::assertNotSame($name, $this->node('another'));
    }

    /**
     * Another process can take a port between the choice and the start of the server.
     *
     * @dataProvider servers
     */
    #[DataProvider('servers')]
    public function testAServerWhosePortIsTakenGetsAnother(string $server, string $port): void
    {
        $this->node('taken');
        $before = $this->ports('taken')[$port];
        // Without listen() the socket is in no table of listening ones, and without SO_REUSEADDR nobody else can bind its port.
        $socket = \socket_create(\AF_INET, \SOCK_STREAM, 0);
        self::assertTrue(\socket_bind($socket, '127.0.0.1', $before));
        try {
            $output = $this->services('taken', "start $server");
            self::assertStringContainsString('a port was taken while a server started', $output);
            self::assertNotSame($before, $this->ports('taken')[$port]);
        } finally {
            \socket_close($socket);
            $this->services('taken', 'purge');
        }
    }

    /** The threads of a server that was killed may outlive its process id, and clients know its port. */
    public function testAServerWhosePortBecomesFreeInAMomentKeepsIt(): void
    {
        $this->node('busy');
        $before = $this->ports('busy')['POSTGRES_PORT'];
        $listener = \proc_open([\PHP_BINARY, '-n', '-r', '$s = stream_socket_server("tcp://127.0.0.1:' . $before . '"); echo "listens\n"; usleep(1_000_000);'], [1 => ['pipe', 'w']], $pipes);
        self::assertSame("listens\n", \fgets($pipes[1]));
        try {
            $this->services('busy', 'start postgres');
            self::assertSame($before, $this->ports('busy')['POSTGRES_PORT']);
        } finally {
            \proc_close($listener);
            $this->services('busy', 'purge');
        }
    }

    public function testRabbitMqStartsAfterItsFirstStartWasInterrupted(): void
    {
        $tables = "{$this->directory}/interrupted/services/rabbitmq/mnesia/node";
        \mkdir($tables, recursive: true);
        \file_put_contents("$tables/schema.DAT", 'half');
        try {
            $this->services('interrupted', 'start rabbitmq');
            // Since 4.2 RabbitMQ keeps its tables elsewhere.
            self::assertNotSame('half', @\file_get_contents("$tables/schema.DAT"));
        } finally {
            $this->services('interrupted', 'purge');
        }
    }

    /** @return array<string, array{string, string}> */
    public static function servers(): array
    {
        return ['RabbitMQ' => ['rabbitmq', 'AMQP_PORT'], 'PostgreSQL' => ['postgres', 'POSTGRES_PORT'], 'MariaDB or MySQL' => ['mariadb', 'MARIADB_PORT']];
    }

    /** @return array<string, int> */
    private function ports(string $directory): array
    {
        return \array_map(intval(...), \parse_ini_file("{$this->directory}/$directory/services/ports"));
    }

    private function node(string $directory): string
    {
        return \trim($this->services($directory, 'node'));
    }

    private function services(string $directory, string $command): string
    {
        $script = \dirname(__DIR__, 2) . '/scripts/services';
        \exec('WEFT_VAR=' . \escapeshellarg("{$this->directory}/$directory") . ' ' . \escapeshellarg($script) . " $command 2>&1", $output, $code);
        self::assertSame(0, $code, \implode("\n", $output));

        return \implode("\n", $output);
    }
}
