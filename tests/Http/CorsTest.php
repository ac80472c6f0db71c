<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Http\Cors;

/** Pages of other origins: those that may read responses, and those that may not send requests. */
final class CorsTest extends HttpTestCase
{
    private const PAGE = 'Origin: https://app.example.org';

    public function testAPreflightOfAListedOriginIsPermitted(): void
    {
        $server = $this->serve('$routes->use(new Weft\Http\Cors(["https://app.example.org"], headers: ["content-type", "x-tenant"], maxAge: 60))->put("/a", static fn() => throw new LogicException("not called"));');

        $preflight = $server->get('/a', '-X', 'OPTIONS', '-H', self::PAGE, '-H', 'Access-Control-Request-Method: PUT');

        self::assertStatus(204, $preflight);
        self::assertSame(
            ['https://app.example.org', 'PUT, PATCH, DELETE', 'content-type, x-tenant', '60', 'origin', ''],
            array_map(static fn(string $name): string => self::field($preflight, $name), ['access-control-allow-origin', 'access-control-allow-methods', 'access-control-allow-headers', 'access-control-max-age', 'vary', 'access-control-allow-credentials']),
        );
    }

    public function testAnotherOriginIsNotPermittedAndOptionsWithoutPreflightIsThatOfTheRouter(): void
    {
        $server = $this->serve('$routes->use(new Weft\Http\Cors(["https://app.example.org"]))->get("/a", static fn() => ["a"]);');

        foreach (['https://app.example.org.evil', 'http://app.example.org', 'null'] as $origin) {
            self::assertSame('', self::field($server->get('/a', '-X', 'OPTIONS', '-H', "Origin: $origin", '-H', 'Access-Control-Request-Method: PUT'), 'access-control-allow-origin'));
            $response = $server->get('/a', '-H', "Origin: $origin");
            self::assertSame(['', 'origin'], [self::field($response, 'access-control-allow-origin'), self::field($response, 'vary')]);
        }
        self::assertSame('GET, HEAD, OPTIONS', self::field($server->get('/a', '-X', 'OPTIONS'), 'allow'));
    }

    public function testResponsesToFailuresCanBeReadAsWell(): void
    {
        $server = $this->serve('$routes->use(new Weft\Http\Cors(["https://app.example.org"], exposed: ["x-total"], credentials: true))->get("/a", static fn() => throw new HttpException(409, "taken"))->get("/b", static fn() => Response::text("b")->withHeader("vary", "accept"));');

        foreach ([['/a', 409, 'origin'], ['/nowhere', 404, 'origin'], ['/b', 200, 'accept, origin']] as [$path, $status, $vary]) {
            $response = $server->get($path, '-H', self::PAGE);
            self::assertStatus($status, $response);
            self::assertSame(['https://app.example.org', 'true', 'x-total', $vary], array_map(static fn(string $name): string => self::field($response, $name), ['access-control-allow-origin', 'access-control-allow-credentials', 'access-control-expose-headers', 'vary']));
        }
    }

    public function testAGroupHasPreflightsOfItsOwn(): void
    {
        $server = $this->serve('$routes->group("/api", static fn(Router $api) => $api->post("/{id}", static fn(string $id) => [$id]), new Weft\Http\Cors(["*"]))->post("/own", static fn() => ["own"]);');

        self::assertSame('*', self::field($server->get('/api/7', '-X', 'OPTIONS', '-H', self::PAGE, '-H', 'Access-Control-Request-Method: POST'), 'access-control-allow-origin'));
        self::assertSame('*', self::field($server->get('/api/7', '-X', 'POST', '-H', self::PAGE), 'access-control-allow-origin'));
        self::assertSame('', self::field($server->get('/own', '-X', 'OPTIONS', '-H', self::PAGE, '-H', 'Access-Control-Request-Method: POST'), 'access-control-allow-origin'));
    }

    public function testAPreflightIsAnsweredByTheGroupOfItsMethod(): void
    {
        $group = '$routes->group("/api", static fn(Router $api) => $api->%s("/{id%s}", static fn(string $id) => [$id])->%1$s("/x", static fn() => ["x"]), %s);';
        $server = $this->serve(
            sprintf($group, 'get', '', 'static fn(Request $request, Closure $next): Response => $next($request)->withHeader("x-outer", "read")')
            . sprintf($group, 'post', ':\d+', 'new Weft\Http\Cors(["https://app.example.org"])')
            . '$routes->put("/api/x", static fn() => ["put"]);',
        );
        $preflight = static function (string $path, string ...$fields) use ($server): array {
            $response = $server->get($path, '-X', 'OPTIONS', ...$fields);

            return [self::field($response, 'access-control-allow-origin'), self::field($response, 'x-outer')];
        };

        foreach (['/api/x', '/api/7'] as $path) {
            self::assertSame(['https://app.example.org', ''], $preflight($path, '-H', self::PAGE, '-H', 'Access-Control-Request-Method: POST'), $path);
            foreach (['GET', 'HEAD', 'DELETE'] as $method) {
                self::assertSame(['', 'read'], $preflight($path, '-H', self::PAGE, '-H', "Access-Control-Request-Method: $method"), "$method $path");
            }
            self::assertSame(['', 'read'], $preflight($path));
        }
        self::assertSame(['', ''], $preflight('/api/x', '-H', self::PAGE, '-H', 'Access-Control-Request-Method: PUT'));
    }

    public function testWrongArgumentsAreRefused(): void
    {
        foreach ([[['app.example.org']], [['https://app.example.org/']], [['https://App.example.org '], [], [], [], false, -1], [['*'], 'credentials' => true], [['*'], 'maxAge' => -1]] as $arguments) {
            try {
                new Cors(...$arguments);
                self::fail('it was taken: ' . print_r($arguments, true));
            } catch (\ValueError) {
                $this->addToAssertionCount(1);
            }
        }
    }

    /** @dataProvider crossSiteRequests */
    #[DataProvider('crossSiteRequests')]
    public function testCrossSiteRequestsOfABrowserAreRefused(int $status, string ...$fields): void
    {
        $server = $this->serve('$routes->use(new Weft\Http\Csrf(["https://admin.example.org"]))->post("/", static fn() => Response::text("done"))->get("/", static fn() => Response::text("seen"));');
        $arguments = array_merge(...array_map(static fn(string $field): array => ['-H', str_replace('SELF', $server->address, $field)], array_values($fields)) ?: [[]]);

        self::assertStatus($status, $server->get('/', '-X', 'POST', ...$arguments));
        self::assertStatus(200, $server->get('/', ...$arguments));
    }

    /** @return iterable<string, array<int|string>> */
    public static function crossSiteRequests(): iterable
    {
        yield 'a page of the server' => [200, 'Sec-Fetch-Site: same-origin', 'Origin: http://SELF'];
        yield 'the user' => [200, 'Sec-Fetch-Site: none'];
        yield 'another site' => [403, 'Sec-Fetch-Site: cross-site', 'Origin: https://evil.example'];
        yield 'a subdomain' => [403, 'Sec-Fetch-Site: same-site', 'Origin: https://user.example.org'];
        yield 'a site that is listed' => [200, 'Sec-Fetch-Site: same-site', 'Origin: https://admin.example.org'];
        yield 'a fetch site that does not exist' => [403, 'Sec-Fetch-Site: same-origin, none'];
        yield 'an old browser' => [200, 'Origin: http://SELF'];
        yield 'an old browser and another site' => [403, 'Origin: https://evil.example'];
        yield 'an old browser and another port' => [403, 'Origin: http://127.0.0.1:1'];
        yield 'a page without an origin' => [403, 'Origin: null'];
        yield 'no browser' => [200];
    }
}
