<?php

declare(strict_types=1);

namespace Weft\Tests\Examples;

use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\TestCase;
use Weft\Bench\Port;
use Weft\Tests\Cli\Supervised;
use Weft\Tests\Hooks\Support\Redis;
use Weft\Tests\Http\ServerProcess;

require_once __DIR__ . '/../../bench/autoload.php';

/**
 * The example with PDO, Guzzle and phpredis: one process answers requests side by side.
 *
 * @requires extension pdo_pgsql
 * @requires extension redis
 */
#[RequiresPhpExtension('pdo_pgsql')]
#[RequiresPhpExtension('redis')]
final class CatalogTest extends TestCase
{
    private const PROGRAM = __DIR__ . '/../../examples/catalog/app.php';
    private const REQUESTS = 10;

    private \PDO $database;
    private ?Supervised $catalog = null;

    protected function setUp(): void
    {
        \is_file('/usr/share/php/GuzzleHttp/autoload.php') || self::markTestSkipped('GuzzleHttp is not installed');
        $this->database = new \PDO(self::dsn());
        $this->database->exec('DROP TABLE IF EXISTS catalog_products; CREATE TABLE catalog_products (id int PRIMARY KEY, name text NOT NULL)');
        $this->database->exec("INSERT INTO catalog_products SELECT i, 'product ' || i FROM generate_series(1, 20) AS i");
    }

    protected function tearDown(): void
    {
        $this->catalog?->signal(\SIGTERM);
        $this->catalog?->end();
        isset($this->database) && $this->database->exec('DROP TABLE catalog_products');
    }

    public function testRequestsWaitForTheOtherServiceSideBySideAndTheCacheAnswersTheNext(): void
    {
        $redis = Redis::start() ?? self::markTestSkipped('redis-server is not installed');
        // It answers nobody before all have asked.
        $requests = self::REQUESTS;
        $prices = ServerProcess::start("\$waiting = 0; \$routes->get('/prices/{id}', function (int \$id) use (&\$waiting) { for (\$waiting++; \$waiting < $requests;) { delay(0.001); } return Response::text((\$id * 10) . '.00'); });");
        $port = Port::free();
        $this->catalog = new Supervised(self::PROGRAM, ['--workers=1'], [
            'PORT' => (string) $port, 'DATABASE' => self::dsn(), 'PRICES' => "http://$prices->address", 'REDIS' => "127.0.0.1:$redis->port",
        ]);
        $this->catalog->wait('is ready');
        $ask = static fn(): array => self::requests(\array_map(static fn(int $id): string => "http://127.0.0.1:$port/products/$id", \range(1, self::REQUESTS)));
        $expected = \array_map(static fn(int $id): array => [200, ['id' => $id, 'name' => "product $id", 'price' => $id * 10 . '.00']], \range(1, self::REQUESTS));

        self::assertSame($expected, $ask());
        $prices->stop();
        self::assertSame($expected, $ask());
        $prices = ServerProcess::start("\$routes->get('/prices/{id}', fn() => Response::text('1'));", address: $prices->address);
        self::assertSame(404, self::requests(["http://127.0.0.1:$port/products/99"])[0][0]);
        $prices->stop();
    }

    private static function dsn(): string
    {
        $url = \parse_url((string) \getenv('DATABASE_URL'));
        isset($url['host'], $url['port'], $url['user'], $url['pass']) || self::fail('DATABASE_URL is not set: `make services` starts the servers and writes it to var/services/env');

        return "pgsql:host=$url[host];port=$url[port];dbname=weft;user=$url[user];password=$url[pass]";
    }

    /**
     * @param list<string> $urls
     *
     * @return list<array{int, mixed}> status and body of each
     */
    private static function requests(array $urls): array
    {
        $multi = \curl_multi_init();
        $transfers = \array_map(static function (string $url) use ($multi): \CurlHandle {
            $transfer = \curl_init($url);
            \curl_setopt_array($transfer, [\CURLOPT_RETURNTRANSFER => true, \CURLOPT_TIMEOUT => 60]);
            \curl_multi_add_handle($multi, $transfer);

            return $transfer;
        }, $urls);
        do {
            \curl_multi_exec($multi, $active);
            \curl_multi_select($multi);
        } while ($active > 0);

        return \array_map(static fn(\CurlHandle $transfer): array => [\curl_getinfo($transfer, \CURLINFO_RESPONSE_CODE), \json_decode((string) \curl_multi_getcontent($transfer), true)], $transfers);
    }
}
