<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Laravel;

use PHPUnit\Framework\TestCase;
use Weft\Bench\Port;
use Weft\Tests\Cli\Supervised;
use Weft\Tests\Sql\Support\Databases;
use Weft\Tests\Timing;

require_once __DIR__ . '/../../../bench/autoload.php';

/** Requests of many users that wait at the same time never see each other's state. */
final class StateTest extends TestCase
{
    use RequiresLaravel;
    use Databases;

    private const REQUESTS = 160;

    private const USERS = 64;

    private string $directory = '';

    protected function tearDown(): void
    {
        \exec('rm -rf ' . \escapeshellarg($this->directory));
    }

    public function testInterleavedRequestsNeverSeeTheStateOfOthers(): void
    {
        $answers = $this->answers(self::REQUESTS, []);

        $expected = \array_map(static fn(int $number): string => 'matched user' . $number % self::USERS . " $number 5", \range(0, self::REQUESTS - 1));
        self::assertSame($expected, $answers);
    }

    public function testWithOneApplicationForAllTheSameRequestsSeeTheStateOfOthers(): void
    {
        $answers = $this->answers(40, ['SHARED' => '1']);

        // An answer that is missing or a failure shows nothing.
        $mismatches = \preg_grep('/^(mismatch|left by another request): \w/', $answers);
        self::assertGreaterThan(20, \count($mismatches), \implode("\n", $answers));
    }

    /**
     * @param array<string, string> $environment
     *
     * @return list<string>
     */
    private function answers(int $requests, array $environment): array
    {
        $this->directory = \sys_get_temp_dir() . '/weft-laravel-' . \bin2hex(\random_bytes(6));
        foreach (['sessions', 'cache', 'views', 'logs', 'framework'] as $name) {
            \mkdir("$this->directory/$name", recursive: true);
        }
        $database = $this->database('postgres');
        $database->execute('CREATE TABLE customers (id serial PRIMARY KEY, name varchar(100), email varchar(100), welcomed boolean DEFAULT false)');
        \preg_match('/search_path%3D(\w+)/', $this->databaseDsn('postgres'), $schema);
        $address = '127.0.0.1:' . Port::free();
        $server = new Supervised(__DIR__ . '/state/server.php', [], $environment + [
            'LISTEN' => $address,
            'APP_VAR' => $this->directory,
            'APP_SERVICES_CACHE' => "$this->directory/services.php",
            'APP_PACKAGES_CACHE' => "$this->directory/packages.php",
            'DB_CONNECTION' => 'pgsql',
            'DB_SCHEMA' => $schema[1] ?? '',
            'DATABASE_URL' => (string) \getenv('DATABASE_URL'),
            'WEFT_APPLICATION_WAIT' => '60',
        ]);
        $server->wait('is ready');
        try {
            $answers = [];
            foreach (\array_chunk(\range(0, $requests - 1), 32) as $numbers) {
                \array_push($answers, ...self::get($address, $numbers));
            }

            return $answers;
        } finally {
            $server->signal(\SIGTERM);
            $server->end();
        }
    }

    /**
     * Sends requests all at once.
     *
     * @param list<int> $numbers
     *
     * @return list<string>
     */
    private static function get(string $address, array $numbers): array
    {
        $handles = \curl_multi_init();
        $sent = [];
        foreach ($numbers as $number) {
            $curl = \curl_init("http://$address/check?user=user" . $number % self::USERS . "&n=$number");
            \curl_setopt_array($curl, [\CURLOPT_RETURNTRANSFER => true, \CURLOPT_TIMEOUT => (int) Timing::DEADLINE]);
            \curl_multi_add_handle($handles, $curl);
            $sent[] = $curl;
        }
        do {
            \curl_multi_exec($handles, $active);
            $active > 0 && \curl_multi_select($handles, 1.0);
        } while ($active > 0);

        return \array_map(static fn(\CurlHandle $curl): string => (string) \curl_multi_getcontent($curl), $sent);
    }
}
