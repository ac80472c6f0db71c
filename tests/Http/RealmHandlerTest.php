<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use PHPUnit\Framework\TestCase;
use Weft\Bench\HttpAnswer;
use Weft\Bench\Port;
use Weft\Tests\Cli\Supervised;
use Weft\Tests\Timing;

require_once __DIR__ . '/../../bench/autoload.php';

/** Classic PHP files, served concurrently by one process. */
final class RealmHandlerTest extends TestCase
{
    private static string $directory;
    private static string $address;
    private static Supervised $server;

    public static function setUpBeforeClass(): void
    {
        self::$directory = \sys_get_temp_dir() . '/weft-realms-' . \bin2hex(\random_bytes(6));
        \mkdir(self::$directory . '/sessions', recursive: true);
        self::$address = '127.0.0.1:' . Port::free();
        self::$server = new Supervised(__DIR__ . '/Fixtures/realms/app.php', [], ['LISTEN' => self::$address, 'SESSIONS' => self::$directory . '/sessions']);
        self::$server->wait('is ready');
    }

    public static function tearDownAfterClass(): void
    {
        self::$server->signal(\SIGTERM);
        self::$server->end();
        \exec('rm -rf ' . \escapeshellarg(self::$directory));
    }

    public function testASessionIsKeptFromRequestToRequest(): void
    {
        [, $headers, $body] = self::request('/?user=ada');
        self::assertSame('ada 1 GET ', $body);
        self::assertMatchesRegularExpression('{^set-cookie: PHPSESSID=(\w+)}mi', $headers);
        \preg_match('{^set-cookie: PHPSESSID=(\w+)}mi', $headers, $session);

        [, , $body] = self::request('/?user=ada', ["Cookie: PHPSESSID=$session[1]"]);

        self::assertSame('ada 2 GET ', $body);
    }

    public function testStatusHeadersAndCookiesReachTheClient(): void
    {
        [$status, $headers] = self::request('/?user=eve&status=403');

        self::assertSame(403, $status);
        self::assertMatchesRegularExpression('{^x-user: eve\r?$}mi', $headers);
        self::assertMatchesRegularExpression('{^content-type: text/html; charset=UTF-8\r?$}mi', $headers);
        self::assertMatchesRegularExpression('{^set-cookie: seen=1\r?$}mi', $headers);
    }

    public function testAFormAndARawBodyAreRead(): void
    {
        self::assertSame('bob 1 POST user=bob&a=1', self::request('/', ['Content-Type: application/x-www-form-urlencoded'], 'POST', 'user=bob&a=1')[2]);
        self::assertSame('none 1 PUT raw', self::request('/', ['Content-Type: text/plain'], 'PUT', 'raw')[2]);
    }

    public function testAnUploadIsMovedAsPhpDoesIt(): void
    {
        $body = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\nContent-Type: text/plain\r\n\r\ncontents\r\n--b--\r\n";

        [, , $body] = self::request('/?upload=' . \rawurlencode(self::$directory . '/moved'), ['Content-Type: multipart/form-data; boundary=b'], 'POST', $body);

        self::assertSame('a.txt 8 text/plain moved', $body);
        self::assertSame('contents', \file_get_contents(self::$directory . '/moved'));
    }

    public function testAnExceptionIsA500AndTheNextRequestIsServed(): void
    {
        self::assertSame(500, self::request('/?user=ada&throw=1')[0]);
        self::assertSame([], self::$server->all('the process has failed'));
        self::assertSame('ada 1 GET ', self::request('/?user=ada')[2]);
    }

    public function testAnExceptionIsAnsweredByTheExceptionHandlerOfTheScript(): void
    {
        foreach (['return', 'exit'] as $handler) {
            [$status, , $body] = self::request("/?throw=1&handler=$handler");
            self::assertSame([503, 'null handled on purpose shut down'], [$status, $body]);
        }
        [$status, , $body] = self::request('/?throw=1&handler=throw');
        self::assertSame([500, false], [$status, \str_contains($body, 'handled')]);
        self::assertSame('ada 1 GET ', self::request('/?user=ada')[2]);
    }

    public function testAScriptThatExitsHasAnswered(): void
    {
        [$status, $headers, $body] = self::request('/?redirect=1', redirects: false);

        self::assertSame([302, ''], [$status, $body]);
        self::assertMatchesRegularExpression('{^location: /elsewhere\r?$}mi', $headers);
        self::assertSame('ada 1 GET ', self::request('/?user=ada')[2]);
    }

    /** Each request checks its own state at five points where it waits, while up to 16 others run. */
    public function testInterleavedRequestsNeverSeeTheStateOfOthers(): void
    {
        $handles = \curl_multi_init();
        $requests = [];
        for ($i = 0; $i < 400; $i++) {
            $user = 'user' . $i % 64;
            $curl = \curl_init('http://' . self::$address . "/?check=1&user=$user&n=$i");
            \curl_setopt_array($curl, [\CURLOPT_RETURNTRANSFER => true, \CURLOPT_COOKIE => "PHPSESSID=session$i", \CURLOPT_TIMEOUT => (int) Timing::DEADLINE, \CURLOPT_HEADER => true]);
            \curl_multi_add_handle($handles, $curl);
            $requests[] = [$curl, $user, $i];
        }
        do {
            \curl_multi_exec($handles, $active);
            $active > 0 && \curl_multi_select($handles, 1.0);
        } while ($active > 0);

        foreach ($requests as [$curl, $user, $i]) {
            $answer = (string) \curl_multi_getcontent($curl);
            self::assertStringContainsString("matched $user $i 5", $answer);
            self::assertMatchesRegularExpression("{^x-check: $i\\r\$}mi", $answer);
        }
    }

    public function testWithoutRealmsTheSameRequestsSeeTheStateOfOthers(): void
    {
        $handles = \curl_multi_init();
        $requests = [];
        for ($i = 0; $i < 20; $i++) {
            $curl = \curl_init('http://' . self::$address . "/shared?n=$i");
            \curl_setopt_array($curl, [\CURLOPT_RETURNTRANSFER => true, \CURLOPT_TIMEOUT => (int) Timing::DEADLINE]);
            \curl_multi_add_handle($handles, $curl);
            $requests[] = $curl;
        }
        do {
            \curl_multi_exec($handles, $active);
            $active > 0 && \curl_multi_select($handles, 1.0);
        } while ($active > 0);

        $answers = \array_map(static fn(\CurlHandle $curl): string => (string) \curl_multi_getcontent($curl), $requests);
        self::assertContains('mismatch', $answers);
    }

    /**
     * @param list<string> $headers
     *
     * @return array{int, string, string} status, headers and body
     */
    private static function request(string $path, array $headers = [], string $method = 'GET', string $body = '', bool $redirects = true): array
    {
        $answer = HttpAnswer::of('http://' . self::$address . $path, ['method' => $method, 'header' => $headers, 'content' => $body, 'follow_location' => (int) $redirects]);

        return [$answer->status, \implode("\r\n", $answer->headers), (string) $answer->body];
    }
}
