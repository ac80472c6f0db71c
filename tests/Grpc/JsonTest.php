<?php

declare(strict_types=1);

namespace Weft\Tests\Grpc;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Grpc\Internal\Json\Binding;
use Weft\Grpc\Internal\Json\Messages;
use Weft\Grpc\InvalidServiceError;
use Weft\Grpc\Limits;
use Weft\Grpc\MethodLimits;
use Weft\Grpc\Server;
use Weft\Tests\Grpc\Library\Shelves;
use Weft\Tests\Protobuf\Generated\Everything\Everything;
use Weft\Tests\Protobuf\Generated\Everything\EverythingFile;

/** Methods with `google.api.http` are called by curl, as anybody would; curl speaks HTTP/1.1 and HTTP/2. */
final class JsonTest extends TestCase
{
    private static GrpcProcess $server;

    public static function setUpBeforeClass(): void
    {
        self::$server = GrpcProcess::launch([__DIR__ . '/Library/server.php']);
    }

    public static function tearDownAfterClass(): void
    {
        self::$server->stop();
    }

    /** @dataProvider versions */
    #[DataProvider('versions')]
    public function testAPathCallsAMethod(string $version): void
    {
        $answer = self::ask('GET', '/v1/shelves/3/books/a%20b', null, "--$version", '-H', 'authorization: Bearer 1');

        self::assertSame([200, 'application/json', 'a', 'b'], [$answer->httpStatus(), $answer->field('content-type'), $answer->field('x-first'), $answer->field('x-last')]);
        self::assertSame(['name' => 'shelves/3/books/a b', 'title' => '/library.Library/GetBook Bearer 1', 'pages' => '9223372036854775807'], json_decode($answer->body, true));
        self::assertSame((string) \strlen($answer->body), $answer->field('content-length'));
        self::assertNull($answer->field('grpc-status'));
    }

    /** @return iterable<string, array{string}> */
    public static function versions(): iterable
    {
        yield 'HTTP/1.1' => ['http1.1'];
        yield 'HTTP/2' => ['http2-prior-knowledge'];
    }

    /**
     * RFC 9110 §9.1 and §9.3.2
     *
     * @dataProvider versions
     */
    #[DataProvider('versions')]
    public function testHeadIsAnsweredLikeGetWithoutTheBody(string $version): void
    {
        foreach (['/v1/shelves/3/books/a', '/v1/books/newest', '/v1/books/lost', '/v1/search?words=a', '/v1/shelves/s/books?limit=3'] as $path) {
            $get = self::ask('GET', $path, null, "--$version");
            $head = self::ask('HEAD', $path, null, "--$version", '--head');

            $fields = static fn(Answer $answer): array => [$answer->httpStatus(), $answer->field('content-type'), $answer->field('content-length')];
            self::assertSame($fields($get), $fields($head), $path);
            // curl prints the head where the body would be.
            self::assertStringEndsWith("\r\n\r\n", $head->body);
        }
        self::assertSame(404, self::ask('HEAD', '/v1/import', null, "--$version", '--head')->httpStatus());
    }

    /**
     * RFC 9113 §8.3.1
     *
     * @dataProvider calls
     */
    #[DataProvider('calls')]
    public function testACallOverHttp2WhoseHostIsNotItsAuthorityIsRefused(string $verb, string $path, string $contentType, string $message): void
    {
        $wire = new Wire(self::$server->connect());
        $fields = [
            ':method' => $verb, ':scheme' => 'http', ':path' => $path, ':authority' => 'test', 'content-type' => $contentType, 'te' => 'trailers',
        ];
        $answers = [];
        foreach ([1 => 'other', 3 => 'TEST'] as $stream => $host) {
            $wire->send(Wire::head($stream, [...$fields, 'host' => $host]) . Wire::frame(Wire::DATA, Wire::END_STREAM, $stream, $message));
            [, $answered, $head] = $wire->await(Wire::HEADERS);
            $answers[$answered] = $head[0];
        }

        // RFC 7541 appendix A: 12 is ":status: 400", 8 is ":status: 200".
        self::assertSame([1 => "\x8c", 3 => "\x88"], $answers);
        self::assertTrue(self::$server->awaitLog('× bad_request, last from 127.0.0.1:'));
    }

    /** @return iterable<string, array{string, string, string, string}> */
    public static function calls(): iterable
    {
        yield 'gRPC' => ['POST', '/library.Library/GetBook', 'application/grpc', "\0\0\0\0\0"];
        yield 'gRPC-Web' => ['POST', '/library.Library/GetBook', 'application/grpc-web+proto', "\0\0\0\0\0"];
        yield 'JSON' => ['POST', '/v1/shelves/7/books', 'application/json', '{}'];
    }

    public function testTheSamePortServesGrpcAndPagesToo(): void
    {
        self::assertSame('a page', self::ask('GET', '/page')->body);
        self::assertSame(404, self::ask('GET', '/v1/nothing')->httpStatus());
        [$exit, $output] = Tool::run('grpcurl', ['-plaintext', '-d', '{"name": "x"}', self::$server->address, 'library.Library/GetBook']);
        self::assertSame(0, $exit, $output);
        self::assertSame('x', json_decode($output, true)['name']);
    }

    public function testAServerOfGrpcAloneAnswersForPathsAndMethodsOfHttpThatNoneHas(): void
    {
        $shared = self::$server;
        self::$server = GrpcProcess::launch([__DIR__ . '/Library/server.php', 'alone']);
        try {
            self::assertSame(200, self::ask('GET', '/v1/books/x')->httpStatus());
            self::assertSame(404, self::ask('GET', '/v1/nothing')->httpStatus());
            $wrong = self::ask('DELETE', '/v1/books/x');
            self::assertSame([405, 'GET, HEAD'], [$wrong->httpStatus(), $wrong->field('allow')]);
            self::assertSame(200, self::ask('HEAD', '/v1/books/x', null, '--head')->httpStatus());
            self::assertSame(415, self::$server->post('/library.Library/GetBook', '', '--http1.1')->httpStatus());
        } finally {
            self::$server->stop();
            self::$server = $shared;
        }
    }

    public function testAdditionalBindingsAndMethodsOfHttpWithoutAFieldOfTheirOwnWork(): void
    {
        self::assertSame('x', json_decode(self::ask('GET', '/v1/books/x')->body, true)['name']);
        self::assertSame('x', json_decode(self::ask('REPORT', '/v1/reports/x')->body, true)['name']);
    }

    public function testTheMoreSpecificPathWins(): void
    {
        self::assertSame('{"name":"newest"}', self::ask('GET', '/v1/books/newest')->body);
    }

    public function testTheBodyIsAFieldOfTheRequestAndTheQueryIsTheOthers(): void
    {
        $answer = self::ask('POST', '/v1/shelves/7/books?draft=true', '{"title": "T", "pages": 5, "author": {"firstName": "F"}}');

        self::assertSame(['name' => 'shelves/7/books/1', 'title' => 'T (draft)', 'pages' => '5', 'author' => ['firstName' => 'F']], json_decode($answer->body, true));
    }

    public function testThePathGoesBeforeTheBody(): void
    {
        $answer = self::ask('PATCH', '/v1/shelves/1/books/2?updateMask=title,author.lastName', '{"name": "another", "title": "T"}');

        $book = json_decode($answer->body, true);
        self::assertSame(['shelves/1/books/2', 'T'], [$book['name'], $book['title']]);
        self::assertSame(['book' => ['name' => 'shelves/1/books/2', 'title' => 'T'], 'updateMask' => 'title,author.lastName'], json_decode($book['author']['firstName'], true));
    }

    public function testTheBodyIsTheWholeRequestButThePath(): void
    {
        $answer = self::ask('POST', '/v1/shelves/1/books/2:lend', '{"reader": "R", "time": "3.5s"}');

        self::assertSame(['name' => 'shelves/1/books/2', 'title' => 'lent to R'], json_decode($answer->body, true));
    }

    public function testAPathReplacesTheSameMemberOfAOneofInTheBodyAndAQueryAloneIsOne(): void
    {
        $lent = self::ask('POST', '/v1/shelves/1/books/2:lend', '{"name": "another", "reader": "R"}');
        $copied = self::ask('POST', '/v1/shelves/1/books?copyOf=x', null, '-H', 'content-type: application/json');

        self::assertSame([200, 'shelves/1/books/2'], [$lent->httpStatus(), json_decode($lent->body, true)['name']]);
        self::assertSame(200, $copied->httpStatus());
    }

    public function testAQueryHasFieldsOfEveryKind(): void
    {
        $answer = self::ask('GET', '/v1/search?words=a&words=b%26c+d&author.first_name=F&author.lastName=L&in_stock=true&leastPages=9007199254740993'
            . '&leastRating=1.5&order=ORDER_NEWEST&since=2026-01-02T03:04:05Z&signed=false&cursor=AAE%3D&years=1&years=2');

        $found = json_decode($answer->body, true);
        self::assertCount(2, $found, 'the response_body alone');
        self::assertSame([
            'words' => ['a', 'b&c d'], 'author' => ['firstName' => 'F', 'lastName' => 'L'], 'inStock' => true, 'leastPages' => '9007199254740993',
            'leastRating' => 1.5, 'order' => 'ORDER_NEWEST', 'since' => '2026-01-02T03:04:05Z', 'signed' => false, 'cursor' => 'AAE=', 'years' => [1, 2],
        ], json_decode($found[0]['title'], true));
        self::assertStringContainsString('ORDER_NEWEST', self::ask('GET', '/v1/search?order=1')->body);
    }

    /** @dataProvider unsetFields */
    #[DataProvider('unsetFields')]
    public function testAResponseBodyThatIsNotSetIsTheDefaultOfItsType(string $field, string $json): void
    {
        $binding = new Binding('GET', '/', '', $field, Everything::class, new Messages([EverythingFile::class]));

        self::assertSame($json, $binding->response(new Everything()));
    }

    /** @return iterable<string, array{string, string}> */
    public static function unsetFields(): iterable
    {
        $defaults = [
            'numbers' => '[]', 'children' => '[]', 'by_name' => '{}', 'by_truth' => '{}', 'bool' => 'false', 'string' => '""', 'bytes' => '""',
            'int32' => '0', 'double' => '0', 'int64' => '"0"', 'fixed64' => '"0"', 'colour' => '"COLOUR_UNSPECIFIED"',
            // Fields with presence.
            'child' => 'null', 'maybe_number' => 'null', 'chosen_text' => 'null', 'wrapped_bool' => 'null', 'at' => 'null',
        ];
        foreach ($defaults as $field => $json) {
            yield $field => [$field, $json];
        }
    }

    public function testAMethodThatStreamsAnswersInLines(): void
    {
        $answer = self::ask('GET', '/v1/shelves/s/books?limit=3');

        self::assertSame('application/x-ndjson', $answer->field('content-type'));
        self::assertSame('{"result":{"name":"s/1"}}' . "\n" . '{"result":{"name":"s/2"}}' . "\n" . '{"result":{"name":"s/3"}}' . "\n", $answer->body);
        self::assertSame([200, ''], [($empty = self::ask('GET', '/v1/shelves/s/books'))->httpStatus(), $empty->body]);
    }

    public function testAFailureAfterTheFirstLineIsTheLastLine(): void
    {
        $answer = self::ask('GET', '/v1/shelves/torn/books?limit=20000');

        $lines = explode("\n", trim($answer->body));
        self::assertCount(20_001, $lines);
        self::assertSame(['error' => ['code' => 500, 'message' => 'the rest is torn', 'status' => 'DATA_LOSS', 'details' => []]], json_decode(end($lines), true));
    }

    public function testAStatusIsOneOfHttpWithDetailsAndMetadata(): void
    {
        $answer = self::ask('GET', '/v1/books/lost');

        self::assertSame([404, 'application/json', 'lost'], [$answer->httpStatus(), $answer->field('content-type'), $answer->field('x-reason')]);
        self::assertSame(['error' => [
            'code' => 404, 'message' => 'the book "lost" is lost', 'status' => 'NOT_FOUND',
            'details' => [['@type' => 'type.googleapis.com/library.Author', 'firstName' => 'Ada', 'lastName' => 'L']],
        ]], json_decode($answer->body, true));
        self::assertNull($answer->field('grpc-status-details-bin'));
    }

    public function testAnExceptionIsNotShown(): void
    {
        $answer = self::ask('GET', '/v1/books/broken');

        self::assertSame(500, $answer->httpStatus());
        self::assertSame('the handler failed', json_decode($answer->body, true)['error']['message']);
        self::assertTrue(self::$server->awaitLog('a secret'));
    }

    /** @dataProvider wrong */
    #[DataProvider('wrong')]
    public function testAnInvalidRequestIsRefusedWithTheReason(int $status, string $message, string $verb, string $path, ?string $body = null, string ...$options): void
    {
        $answer = self::ask($verb, $path, $body, ...$options);

        self::assertSame($status, $answer->httpStatus(), $answer->body);
        self::assertStringContainsString($message, json_decode($answer->body, true)['error']['message']);
    }

    /** @return iterable<string, array{0: int, 1: string, 2: string, 3: string, 4?: ?string, 5?: string, 6?: string}> */
    public static function wrong(): iterable
    {
        yield 'a field that is none' => [400, 'library.SearchRequest has no field "colour"', 'GET', '/v1/search?colour=red'];
        yield 'a number that is none' => [400, 'leastPages', 'GET', '/v1/search?leastPages=x'];
        yield 'a bool that is none' => [400, '"inStock" must be true or false, got "maybe"', 'GET', '/v1/search?inStock=maybe'];
        yield 'a message in a query' => [400, '"author" is a message', 'GET', '/v1/search?author=x'];
        yield 'a field of a list' => [400, 'no field "words.x"', 'GET', '/v1/search?words.x=x'];
        yield 'a field of what is one value' => [400, '"since.seconds" is a field of google.protobuf.Timestamp, which is one value in JSON', 'GET', '/v1/search?since=2026-01-02T03:04:05Z&since.seconds=1'];
        yield 'one value twice' => [400, '"least_pages" is one value and there are several', 'GET', '/v1/search?leastPages=1&least_pages=2'];
        yield 'one nested value twice' => [400, '"author.lastName" is one value', 'GET', '/v1/search?author.lastName=a&author.lastName=a'];
        yield 'a text that is not UTF-8' => [400, '"author.lastName" is not UTF-8', 'GET', '/v1/search?author.lastName=%ff'];
        yield 'a name that is not UTF-8' => [400, 'library.SearchRequest has no field', 'GET', '/v1/search?%ff=1'];
        yield 'a query and a body of one oneof' => [400, '"copy_of" and "book" are of the oneof content, of which one may be set', 'POST', '/v1/shelves/1/books?copyOf=x', '{"title": "T"}'];
        yield 'a path and a body of one oneof' => [400, '"name" and "number" are of the oneof which, of which one may be set', 'POST', '/v1/shelves/1/books/2:lend', '{"number": 3}'];
        yield 'a path into a path' => [400, 'no field "a..b"', 'GET', '/v1/search?a..b=x'];
        yield 'no JSON' => [400, '', 'POST', '/v1/shelves/1/books', '{"title": '];
        yield 'more than the body' => [400, 'The body is not valid JSON', 'POST', '/v1/shelves/1/books', '{}, "shelf": "2"'];
        yield 'an unknown key' => [400, 'colour', 'POST', '/v1/shelves/1/books/2:lend', '{"colour": 1}'];
        yield 'a query beside a body that is all' => [400, 'not from the query', 'POST', '/v1/shelves/1/books/2:lend?reader=x', '{}'];
        yield 'a body where there is none' => [400, '/library.Library/GetBook takes no body', 'GET', '/v1/books/x', '{}'];
        yield 'a form' => [400, 'application/json', 'POST', '/v1/shelves/1/books', 'title=x', '-H', 'content-type: application/x-www-form-urlencoded'];
        yield 'a POST that a page of another origin may send' => [400, 'content type application/json', 'POST', '/v1/shelves/1/books?draft=true', null, '-H', 'origin: https://evil.example'];
        yield 'the same as text' => [400, 'content type application/json', 'POST', '/v1/shelves/1/books', '{"title": "T"}', '-H', 'content-type: text/plain; application/json'];
        yield 'a large body' => [429, 'the limit is 200', 'POST', '/v1/shelves/1/books/2:lend', '{"reader": "' . str_repeat('x', 200) . '"}'];
        yield 'a compressed body' => [400, 'not compressed', 'POST', '/v1/shelves/1/books', '{}', '-H', 'content-encoding: gzip'];
        yield 'a stream of requests' => [501, 'call it by gRPC', 'POST', '/v1/import', '{}'];
        yield 'a handler that takes too long' => [504, 'the deadline has passed', 'GET', '/v1/books/slow'];
        yield 'a client that does not wait' => [504, 'the deadline has passed', 'GET', '/v1/books/slow', null, '-H', 'grpc-timeout: 10m'];
    }

    public function testABodyWhoseJsonTakesTooMuchMemoryIsRefused(): void
    {
        $file = (string) tempnam(sys_get_temp_dir(), 'weft-json');
        file_put_contents($file, '{"title": [' . str_repeat(str_repeat('[', 500) . str_repeat(']', 500) . ',', 1_200) . '0]}');

        $answer = self::ask('POST', '/v1/shelves/1/books', "@$file", '-H', 'Expect:');
        unlink($file);

        self::assertSame(429, $answer->httpStatus(), $answer->body);
        self::assertStringContainsString('The body consists of too many small lists and objects', json_decode($answer->body, true)['error']['message']);
    }

    public function testPagesOfOtherOriginsMayCallWhereTheyAreNamed(): void
    {
        $asked = self::ask('OPTIONS', '/v1/shelves/1/books', null, '-H', 'origin: https://app.example', '-H', 'access-control-request-method: POST', '-H', 'access-control-request-headers: content-type');
        $answer = self::ask('GET', '/v1/books/newest', null, '-H', 'origin: https://app.example');

        self::assertSame([204, 'GET, HEAD, POST', 'content-type', 'https://app.example'], [
            $asked->httpStatus(), $asked->field('access-control-allow-methods'), $asked->field('access-control-allow-headers'), $asked->field('access-control-allow-origin'),
        ]);
        self::assertSame('https://app.example', $answer->field('access-control-allow-origin'));
        self::assertNull(self::ask('GET', '/v1/books/newest', null, '-H', 'origin: https://evil.example')->field('access-control-allow-origin'));
    }

    /** @dataProvider asked */
    #[DataProvider('asked')]
    public function testAPostWithoutABodyIsTakenWhereABrowserWouldHaveAskedFirst(string $field): void
    {
        self::assertSame(200, self::ask('POST', '/v1/shelves/1/books?draft=true', null, '-H', $field)->httpStatus());
    }

    /** @return iterable<array{string}> */
    public static function asked(): iterable
    {
        yield ['content-type: application/json'];
        yield ['x-requested-with: curl'];
    }

    /**
     * GET of such a path may change something, and a browser asks before neither GET, HEAD nor POST.
     *
     * @dataProvider versions
     */
    #[DataProvider('versions')]
    public function testAPathOfEveryMethodOfHttpIsNotCalledByAPageOfAnotherOrigin(string $version): void
    {
        $evil = ['-H', 'origin: https://evil.example'];
        foreach (['GET' => [], 'HEAD' => ['--head'], 'POST' => []] as $verb => $options) {
            $refused = self::ask($verb, '/v1/visits/x', null, "--$version", ...$evil, ...$options);
            self::assertSame(400, $refused->httpStatus(), $verb);
            $verb === 'HEAD' || self::assertStringContainsString('x-requested-with', json_decode($refused->body, true)['error']['message']);
            foreach (['x-requested-with: curl', 'content-type: application/json'] as $field) {
                self::assertSame(200, self::ask($verb, '/v1/visits/x', null, "--$version", '-H', $field, ...$options)->httpStatus(), "$verb $field");
            }
        }
        foreach (['PUT', 'DELETE', 'REPORT', 'OPTIONS'] as $verb) {
            self::assertSame('{"name":"x","title":"visited"}', self::ask($verb, '/v1/visits/x', null, "--$version")->body, $verb);
        }
    }

    /** Fetch §3.2.2 */
    public function testAPreflightForAPathOfEveryMethodOfHttpDoesNotCallIt(): void
    {
        $ask = static fn(string $origin): Answer => self::ask('OPTIONS', '/v1/visits/x', null, '-H', "origin: $origin", '-H', 'access-control-request-method: PUT');

        $allowed = $ask('https://app.example');

        self::assertSame([204, '', '*', 'https://app.example'], [
            $allowed->httpStatus(), $allowed->body, $allowed->field('access-control-allow-methods'), $allowed->field('access-control-allow-origin'),
        ]);
        $other = $ask('https://evil.example');
        self::assertSame([204, '', null], [$other->httpStatus(), $other->body, $other->field('access-control-allow-origin')]);
    }

    public function testAMethodWithoutAPathIsNotServedByHttp(): void
    {
        self::assertSame(404, self::ask('POST', '/library.Library/Inside', '{}')->httpStatus());
    }

    public function testLimitsOfWhatIsNotServedAreRefused(): void
    {
        $this->expectException(InvalidServiceError::class);
        $this->expectExceptionMessage('The limits name "library.Library/Lend"');

        new Server(new Shelves(), new \Weft\Grpc\ServerOptions(limits: new Limits(methods: ['library.Library/Lend' => new MethodLimits(inFlight: 1)])));
    }

    private static function ask(string $verb, string $path, ?string $body = null, string ...$options): Answer
    {
        $data = $body === null ? [] : ['--data-binary', $body, ...($options === [] ? ['-H', 'content-type: application/json'] : [])];
        if ($body !== null && $options !== [] && !str_contains(implode(' ', $options), 'content-type')) {
            array_push($data, '-H', 'content-type: application/json');
        }
        $head = (string) tempnam(sys_get_temp_dir(), 'weft-json');
        $command = ['curl', '-sS', '--max-time', '10', '-g', '-D', $head, '-X', $verb, ...$data, ...$options, 'http://' . self::$server->address . $path];
        $process = proc_open($command, [['file', '/dev/null', 'r'], ['pipe', 'w'], ['pipe', 'w']], $pipes);
        $output = (string) stream_get_contents($pipes[1]);
        $errors = (string) stream_get_contents($pipes[2]);
        $answer = new Answer(proc_close($process), (string) file_get_contents($head), $output, $errors);
        unlink($head);

        return $answer;
    }
}
