<?php

declare(strict_types=1);

namespace Weft\Tests\Packaging;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Symfony\Component\Yaml\Yaml;

/** `compose.yaml` and that of the Rinha, by Docker Compose, and where it is not there, by the keys of the Compose specification. */
final class ComposeTest extends TestCase
{
    /** Docker refuses a file with a key that it does not know. A key that is new here is looked up in the specification first. */
    private const KEYS = [
        // https://github.com/compose-spec/compose-spec/blob/main/02-model.md
        'top' => ['name', 'services', 'volumes'],
        // 05-services.md
        'service' => ['command', 'depends_on', 'environment', 'healthcheck', 'hostname', 'image', 'ports', 'restart', 'stop_grace_period', 'tmpfs', 'ulimits', 'user', 'volumes'],
        'healthcheck' => ['disable', 'interval', 'retries', 'start_interval', 'start_period', 'test', 'timeout'],
    ];

    /** Of each variable that the file names in its first lines: the service, the port in the container, and who logs in with which keys of its environment. */
    private const URLS = [
        'AMQP_URL' => ['rabbitmq', 5672, 'RABBITMQ_DEFAULT_USER', 'RABBITMQ_DEFAULT_PASS', null],
        'DATABASE_URL' => ['postgres', 5432, 'POSTGRES_USER', 'POSTGRES_PASSWORD', 'POSTGRES_DB'],
        'WEFT_MYSQL_DSN' => ['mariadb', 3306, 'MARIADB_USER', 'MARIADB_PASSWORD', 'MARIADB_DATABASE'],
        'RABBITMQ_MANAGEMENT_URL' => ['rabbitmq', 15672, 'RABBITMQ_DEFAULT_USER', 'RABBITMQ_DEFAULT_PASS', null],
        'RABBITMQ_PROMETHEUS_URL' => ['rabbitmq', 15692, null, null, null],
    ];

    /** Where the images keep their data. */
    private const DATA = ['rabbitmq' => '/var/lib/rabbitmq', 'postgres' => '/var/lib/postgresql/data', 'mariadb' => '/var/lib/mysql'];

    public static function setUpBeforeClass(): void
    {
        $library = '/usr/share/php/Symfony/Component/Yaml/autoload.php';
        \is_file($library) && require_once $library;
        \class_exists(Yaml::class) || self::markTestSkipped('symfony/yaml is not installed');
    }

    public function testItsKeysAreThoseOfTheSpecification(): void
    {
        $file = self::file();

        self::assertSame([], \array_diff(\array_keys($file), self::KEYS['top']));
        self::assertSame(\array_keys(self::DATA), \array_keys($file['services']));
        foreach ($file['services'] as $name => $service) {
            self::assertSame([], \array_diff(\array_keys($service), self::KEYS['service']), $name);
            self::assertSame([], \array_diff(\array_keys($service['healthcheck']), self::KEYS['healthcheck']), $name);
        }
    }

    /**
     * Docker Compose reads the files without a daemon.
     *
     * @dataProvider files
     */
    #[DataProvider('files')]
    public function testDockerComposeAcceptsThem(string $file): void
    {
        $program = match (true) {
            self::runs(['docker-compose', 'version'])[0] === 0 => ['docker-compose'],
            self::runs(['docker', 'compose', 'version'])[0] === 0 => ['docker', 'compose'],
            default => self::markTestSkipped('docker-compose is not installed: Debian has a current one from release 13 on'),
        };

        self::assertSame([0, ''], self::runs([...$program, '-f', \dirname(__DIR__, 2) . "/$file", 'config', '--quiet']));
    }

    /** @return iterable<string, array{string}> */
    public static function files(): iterable
    {
        yield 'the servers' => ['compose.yaml'];
        yield 'the example of the Rinha' => ['examples/rinha/compose.yaml'];
    }

    /** `docker compose up --wait` returns when the checks pass. */
    public function testEveryServiceHasAnImageOfOneVersionAndAHealthCheck(): void
    {
        foreach (self::file()['services'] as $name => $service) {
            self::assertMatchesRegularExpression('/^[a-z]+:\d[\w.-]*$/', $service['image'], $name);
            self::assertSame('CMD', $service['healthcheck']['test'][0], $name);
            foreach (['interval', 'timeout'] as $time) {
                self::assertMatchesRegularExpression('/^\d+s$/', $service['healthcheck'][$time], "$name $time");
            }
            self::assertIsInt($service['healthcheck']['retries'], $name);
        }
    }

    public function testTheDataOfEveryServiceIsInAVolumeThatIsDeclared(): void
    {
        $file = self::file();

        self::assertSame(\array_keys($file['services']), \array_keys($file['volumes']));
        foreach ($file['services'] as $name => $service) {
            self::assertSame(["$name:" . self::DATA[$name]], $service['volumes']);
        }
    }

    /** Other machines would reach a server with a known password. */
    public function testThePortsAreThoseOfTheVariablesThatItNamesAndOnlyOfThisMachine(): void
    {
        \preg_match_all('/^#   export (\w+)=\'([^\']+)\'$/m', self::text(), $exports, \PREG_SET_ORDER);
        $services = self::file()['services'];
        $ports = [];

        self::assertSame(\array_keys(self::URLS), \array_column($exports, 1));
        foreach ($exports as [, $variable, $url]) {
            [$service, $port, $user, $password, $database] = self::URLS[$variable];
            $parts = \parse_url($url);
            $environment = $services[$service]['environment'];
            self::assertSame($user === null ? null : $environment[$user], $parts['user'] ?? null, $variable);
            self::assertSame($password === null ? null : $environment[$password], $parts['pass'] ?? null, $variable);
            $database === null || self::assertSame("/{$environment[$database]}", $parts['path'] ?? null, $variable);
            $ports[$service][] = "{$parts['host']}:{$parts['port']}:$port";
        }
        foreach ($services as $name => $service) {
            self::assertEqualsCanonicalizing($ports[$name], $service['ports'], $name);
            self::assertSame([], \preg_grep('/^127\.0\.0\.1:\d+:\d+$/', $service['ports'], \PREG_GREP_INVERT), $name);
        }
    }

    /**
     * @param list<string> $command
     *
     * @return array{int, string} exit code and output
     */
    private static function runs(array $command): array
    {
        \exec(\implode(' ', \array_map(\escapeshellarg(...), $command)) . ' 2>&1', $output, $code);

        return [$code, \implode("\n", $output)];
    }

    /** @return array{name: string, services: array<string, array<string, mixed>>, volumes: array<string, null>} */
    private static function file(): array
    {
        return Yaml::parse(self::text(), Yaml::PARSE_EXCEPTION_ON_INVALID_TYPE);
    }

    private static function text(): string
    {
        return (string) \file_get_contents(\dirname(__DIR__, 2) . '/compose.yaml');
    }
}
