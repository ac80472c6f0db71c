<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use PHPUnit\Framework\Attributes\DataProvider;
use Symfony\Component\Validator\Constraints as Assert;
use Weft\Http\Body;
use Weft\Http\Header;
use Weft\Http\Internal\Handlers\BodyArgument;
use Weft\Http\Internal\Handlers\JsonValue;
use Weft\Http\Internal\Handlers\UnusableResultException;
use Weft\Http\InvalidRouteError;
use Weft\Http\Path;
use Weft\Http\Query;
use Weft\Http\Router;
use Weft\Http\Status;
use Weft\Http\WebSocket;
use Weft\Validation\Validate;

/** Handlers whose signature describes the request and the response. */
final class TypedHandlerTest extends HttpTestCase
{
    private const HANDSHAKE = ['-H', 'connection: upgrade', '-H', 'upgrade: websocket', '-H', 'sec-websocket-version: 13', '-H', 'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ=='];

    private const CLASSES = <<<'PHP'
        enum Currency: string { case Euro = 'eur'; case Dollar = 'usd'; }
        final class Item { public function __construct(public readonly string $sku, public readonly int $count, public readonly float $price = 1.0) {} }
        final class PlaceOrder {
            /** @param list<Item> $items @param array<string, int> $notes */
            public function __construct(public readonly string $customer, public readonly array $items, public readonly Currency $currency = Currency::Euro, public readonly ?DateTimeImmutable $due = null, public readonly array $notes = []) {}
        }
        final class Order {
            /** @param list<Item> $items */
            public function __construct(public readonly int $id, public readonly string $tenant, public readonly array $items, public readonly Currency $currency, public readonly DateTimeImmutable $at, public readonly int $page) {}
        }
        PHP;

    private const ROUTES = <<<'PHP'
        $routes->post("/orders/{id}", static fn(#[Weft\Http\Body] PlaceOrder $order, #[Weft\Http\Path] int $id, #[Weft\Http\Header] string $tenant, #[Weft\Http\Query] int $page = 1): Order
            => new Order($id, $tenant, $order->items, $order->currency, $order->due ?? new DateTimeImmutable("2026-01-02T03:04:05Z"), $page));
        PHP;

    public function testAHandlerGetsItsArgumentsDecodedAndWhatItReturnsIsJson(): void
    {
        $server = $this->serve(self::CLASSES . self::ROUTES);

        $response = $server->get('/orders/7?page=3', ...self::json('{"customer":"ada","items":[{"sku":"a","count":2},{"sku":"b","count":1,"price":2}],"currency":"usd","due":"2026-03-04T05:06:07+02:00"}', 'tenant: acme'));

        self::assertStatus(200, $response);
        self::assertSame('application/json', self::field($response, 'content-type'));
        self::assertSame(
            '{"id":7,"tenant":"acme","items":[{"sku":"a","count":2,"price":1.0},{"sku":"b","count":1,"price":2.0}],"currency":"usd","at":"2026-03-04T05:06:07.000000+02:00","page":3}',
            self::bodyOf($response),
        );
    }

    public function testEveryFaultOfABodyIsNamedByItsJsonPointer(): void
    {
        $server = $this->serve(self::CLASSES . self::ROUTES);

        $problem = self::problem(422, $server->get('/orders/7', ...self::json('{"items":[{"sku":1,"count":2},{"sku":"b","count":"x"},5],"currency":"gbp","due":"soon","notes":{"a/b~c":"x","ä":1}}', 'tenant: acme')));

        self::assertSame(['type' => 'about:blank', 'title' => 'Unprocessable Content', 'status' => 422, 'detail' => '7 values of the request are invalid.'], \array_diff_key($problem, ['errors' => 0]));
        self::assertSame([
            ['in' => 'body', 'pointer' => '#/customer', 'detail' => 'expected string, found nothing (the field is missing)'],
            ['in' => 'body', 'pointer' => '#/items/0/sku', 'detail' => 'expected string, found int'],
            ['in' => 'body', 'pointer' => '#/items/1/count', 'detail' => 'expected int, found string'],
            ['in' => 'body', 'pointer' => '#/items/2', 'detail' => 'expected object, found int'],
            ['in' => 'body', 'pointer' => '#/currency', 'detail' => 'expected one of "eur", "usd"'],
            ['in' => 'body', 'pointer' => '#/due', 'detail' => 'expected ISO 8601 date-time with offset, found a string in another format'],
            ['in' => 'body', 'pointer' => '#/notes/a~1b~0c', 'detail' => 'expected int, found string'],
        ], $problem['errors']);
    }

    /**
     * @dataProvider otherKindsOfJson
     *
     * @param array<string, string> $faults
     */
    #[DataProvider('otherKindsOfJson')]
    public function testAnObjectIsNotAListAndAListIsNotAnObject(string $body, array $faults): void
    {
        $server = $this->serve(<<<'PHP'
            final class Inner { public function __construct(public readonly string $s = "") {} }
            final class Kinds {
                /** @param list<int> $list @param array<string, int> $map @param array<int, int> $numbers @param list<Inner> $inners */
                public function __construct(public readonly array $list = [], public readonly array $map = [], public readonly array $numbers = [], public readonly ?Inner $inner = null, public readonly array $inners = [], public readonly mixed $any = null) {}
            }
            $routes->post("/", static fn(#[Weft\Http\Body] Kinds $kinds): Kinds => $kinds);
            PHP);

        $response = $server->get('/', ...self::json($body));

        if ($faults === []) {
            self::assertStatus(200, $response);

            return;
        }
        self::assertSame($faults, array_column(self::problem(422, $response)['errors'], 'detail', 'pointer'));
    }

    /** @return iterable<string, array{string, array<string, string>}> */
    public static function otherKindsOfJson(): iterable
    {
        yield 'a list for a class' => ['[]', ['#' => 'expected object, found list']];
        yield 'an empty object for a class' => ['{}', []];
        yield 'the right kinds' => ['{"list":[],"map":{},"numbers":{"0":1},"inner":{},"inners":[{}],"any":{"a":[]}}', []];
        yield 'an object with the keys of a list' => ['{"list":{"0":1,"1":2}}', ['#/list' => 'expected list, found object']];
        yield 'an empty object for a list' => ['{"list": { } }', ['#/list' => 'expected list, found object']];
        yield 'an escaped key' => ['{"list":{"\\u0030":1}}', ['#/list' => 'expected list, found object']];
        yield 'lists for maps' => ['{"map":[1,2],"numbers":[1]}', ['#/map' => 'expected object, found list', '#/numbers' => 'expected object, found list']];
        yield 'an empty list for a map' => ['{"map":[ ]}', ['#/map' => 'expected object, found list']];
        yield 'an empty list for an object' => ['{"inner":[],"inners":[[]]}', ['#/inner' => 'expected object, found list', '#/inners/0' => 'expected object, found list']];
        yield 'a text for a number as a key' => ['{"numbers":{"1":1,"x":2}}', ['#/numbers/x' => 'expected int keys, found a string key']];
        yield 'other faults beside it' => ['{"list":["x"],"map":[],"inner":{"s":{}}}', ['#/list/0' => 'expected int, found string', '#/map' => 'expected object, found list', '#/inner/s' => 'expected string, found object']];
        yield 'a class with the key of a list' => ['{"0":1}', []];
        yield 'an object with such a key' => ['{"inner":{"0":1},"inners":[{"0":1,"1":2}]}', []];
        yield 'a list for a map beside such a key' => ['{"any":{"0":1},"map":[1]}', ['#/map' => 'expected object, found list']];
        yield 'a list for an object beside such a key' => ['{"any":{"0":1},"inner":[1]}', ['#/inner' => 'expected object, found list']];
        yield 'an object whose key PHP cannot have' => ['{"list":["x"],"any":{"\\u0000a":1}}', ['#' => 'a name begins with U+0000']];
    }

    public function testTheTypeOfABodyRefusesListsForMapsItself(): void
    {
        $plan = (new Router())->post('/', /** @param array<string, list<int>> $maps */ static fn(#[Body] array $maps): array => [])->routes()[0]->plan;
        $body = $plan->body();

        self::assertInstanceOf(BodyArgument::class, $body);
        self::assertSame(['a' => [1]], $body->type->decode(['a' => [1]]));
        self::assertSame([], $body->type->decode([]));
        $this->expectExceptionMessage('expected map of list of int, found list');
        $body->type->decode([[1]]);
    }

    public function testJsonThatTakesTooMuchMemoryIs413(): void
    {
        $server = $this->serve('$routes->post("/", static fn(#[Weft\Http\Body] Any $any): array => []); final class Any { public mixed $any; }');
        $file = (string) tempnam(sys_get_temp_dir(), 'body');
        file_put_contents($file, '{"any":[' . str_repeat('[0],', 250_000) . '0]}');

        $problem = self::problem(413, $server->get('/', ...self::json("@$file")));
        unlink($file);

        self::assertStringStartsWith('The body consists of too many small lists and objects: its 1.0 MiB would take 55 MiB', $problem['detail']);
    }

    public function testARequestWithoutABodyTakesTheDefaultOfAnOptionalOne(): void
    {
        $server = $this->serve(<<<'PHP'
            final class Filter { public function __construct(public string $text = "all", public int $uses = 0) {} }
            $routes->route(["GET", "POST"], "/default", static function (#[Weft\Http\Body] Filter $filter = new Filter("none")): array { $filter->uses++; return [$filter->text, $filter->uses]; });
            $routes->route(["GET", "POST"], "/null", static fn(#[Weft\Http\Body] ?Filter $filter): array => [$filter?->text]);
            PHP);

        foreach (['/default' => '["none",1]', '/null' => '[null]'] as $path => $expected) {
            foreach ([[], [], ['-X', 'POST'], self::json('')] as $arguments) {
                self::assertSame($expected, self::bodyOf($server->get($path, ...$arguments)));
            }
            self::assertStatus(200, $server->get($path, '--head'));
            self::problem(422, $server->get($path, ...self::json('{"text":1}')));
            self::problem(415, $server->get($path, '-d', 'text=a'));
        }
        self::assertSame('["a",1]', self::bodyOf($server->get('/default', ...self::json('{"text":"a"}'))));
        self::assertSame('["a"]', self::bodyOf($server->get('/null', ...self::json('{"text":"a"}'))));
        self::assertSame('[null]', self::bodyOf($server->get('/null', ...self::json('null'))));
    }

    public function testFaultsOfAllArgumentsAreAnsweredTogether(): void
    {
        $server = $this->serve(self::CLASSES . self::ROUTES);

        $problem = self::problem(400, $server->get('/orders/7?page=many', ...self::json('{}')));

        self::assertSame(['body', 'body', 'header', 'query'], array_column($problem['errors'], 'in'));
        self::assertSame(['in' => 'header', 'name' => 'tenant', 'detail' => 'the field is missing'], $problem['errors'][2]);
        self::assertSame(['in' => 'query', 'name' => 'page', 'detail' => 'expected int, found text'], $problem['errors'][3]);
    }

    public function testABodyThatIsNoJsonIs400AndAnotherContentType415(): void
    {
        $server = $this->serve(self::CLASSES . self::ROUTES);

        foreach (['{"a":' => 'Syntax error', '' => 'the body is empty', "\xff" => 'UTF-8'] as $body => $detail) {
            $problem = self::problem(400, $server->get('/orders/7', ...self::json($body, 'tenant: a')));
            self::assertSame('#', $problem['errors'][0]['pointer']);
            self::assertStringContainsString($detail, $problem['errors'][0]['detail']);
        }
        foreach (['null', '5', '"x"', '[1]'] as $body) {
            self::assertSame('#', self::problem(422, $server->get('/orders/7', ...self::json($body, 'tenant: a')))['errors'][0]['pointer']);
        }
        foreach (['text/plain', 'application/x-www-form-urlencoded', 'application/jsonp'] as $type) {
            self::problem(415, $server->get('/orders/7', '-X', 'POST', '-d', '{}', '-H', "content-type: $type", '-H', 'tenant: a'));
        }
        self::problem(415, $server->get('/orders/7', '-X', 'POST', '-d', '{}', '-H', 'content-type:', '-H', 'tenant: a'));
        self::problem(422, $server->get('/orders/7', '-X', 'POST', '-d', '{}', '-H', 'content-type: application/vnd.acme+json; charset=utf-8', '-H', 'tenant: a'));
        self::assertStatus(404, $server->get('/orders/x', ...self::json('{}')));
    }

    public function testValuesOfQueriesAndHeadersHaveTheTypesOfTheirParameters(): void
    {
        $server = $this->serve(self::CLASSES . <<<'PHP'
            /** @param list<int> $ids */
            $handler = static fn(#[Weft\Http\Query] array $ids, #[Weft\Http\Query] ?bool $all, #[Weft\Http\Query("c")] Currency $currency, #[Weft\Http\Query] float $rate, #[Weft\Http\Query] DateTimeImmutable $since, #[Weft\Http\Header] ?int $ifMatch): array
                => [$ids, $all, $currency, $rate, $since, $ifMatch];
            $routes->get("/", $handler);
            PHP);

        self::assertSame('[[1,2],true,"usd",1.5,"2026-01-01T00:00:00.000000+00:00",5]', self::bodyOf($server->get('/?ids=1&ids=2&all=1&c=usd&rate=1.5&since=2026-01-01T00:00:00Z', '-H', 'If-Match: 5')));
        self::assertSame('[[3],null,"eur",2.0,"2026-01-01T00:00:00.000000+00:00",null]', self::bodyOf($server->get('/?ids[]=3&c=eur&rate=2&since=2026-01-01T00:00:00Z')));
        self::assertSame('[[3,4],null,"eur",2.0,"2026-01-01T00:00:00.000000+00:00",null]', self::bodyOf($server->get('/?ids%5B0%5D=3&ids%5B1%5D=4&c=eur&rate=2&since=2026-01-01T00:00:00Z')));
        $problem = self::problem(400, $server->get('/?ids=x&all=maybe&c=gbp&rate=much&since=now', '-H', 'If-Match: "5"'));
        self::assertSame(['ids', 'all', 'c', 'rate', 'since', 'if-match'], array_column($problem['errors'], 'name'));
        self::assertSame('expected one of "eur", "usd"', $problem['errors'][2]['detail']);
    }

    public function testNumbersAreReadAsTheyAreWrittenInJson(): void
    {
        $server = $this->serve(<<<'PHP'
            enum Level: int { case Low = 1; case High = 2; }
            final class Paging { public function __construct(public readonly int $page = 1) {} }
            $routes->get("/i/{n}", static fn(int $n): array => [$n])->get("/f/{n}", static fn(float $n): array => [$n])->get("/e/{n}", static fn(Level $n): array => [$n]);
            $routes->get("/q", static fn(#[Weft\Http\Query] int $n = 0, #[Weft\Http\Header] ?int $tenant = null): array => [$n, $tenant])->get("/o", static fn(#[Weft\Http\Query] Paging $p): Paging => $p);
            PHP);

        foreach (['/i/5' => '[5]', '/i/-5' => '[-5]', '/i/0' => '[0]', '/f/-1.5e3' => '[-1500.0]', '/f/.5' => '[0.5]', '/f/2' => '[2.0]', '/e/2' => '[2]', '/q?n=7' => '[7,null]', '/o?page=3' => '{"page":3}'] as $path => $expected) {
            self::assertSame($expected, self::bodyOf($server->get($path)), $path);
        }
        foreach (['/i/%205', '/i/5%20', '/i/+5', '/i/%2B5', '/i/5%0A', '/i/05', '/i/0x1', '/i/9223372036854775808', '/f/%205', '/f/+5', '/f/1.', '/f/05', '/f/1e999', '/f/nan', '/e/%201', '/e/+1'] as $path) {
            self::problem(404, $server->get($path));
        }
        foreach (['/q?n=%205', '/q?n=%2B5', '/q?n=5&n=%205', '/q?n[]=1', '/q?n=1&n%5B%5D=1', '/o?page=%205', '/o?page[]=1'] as $path) {
            self::problem(400, $server->get($path));
        }
        self::problem(400, $server->get('/q', '-H', 'tenant: +5'));
    }

    public function testADateTimeWhoseOffsetHasSecondsIsNotSent(): void
    {
        $this->expectException(UnusableResultException::class);
        $this->expectExceptionMessage('returned an invalid DateTimeImmutable: expected a year from 0000 to 9999 and an offset of whole minutes');

        JsonValue::of(['at' => new \DateTimeImmutable('1890-06-01', new \DateTimeZone('Europe/Berlin'))]);
    }

    public function testAnArrayThatIsDeclaredAListAndIsNoneIsNotSentAsAnObject(): void
    {
        $server = $this->serve('$routes->get("/", /** @return list<int> */ static fn(): array => array_filter([1, 2, 3], static fn(int $n): bool => $n !== 2));');

        self::problem(500, $server->get('/'));

        self::assertTrue($server->awaitLog('returned an array with the key 2 where its type is a list, whose keys are 0, 1, 2, …; return array_values() of it'), $server->log());
    }

    public function testAnObjectIsMadeOfQueryParameters(): void
    {
        $server = $this->serve(<<<'PHP'
            final class Filter { /** @param list<string> $tags */ public function __construct(public readonly string $q, public readonly int $page = 1, public readonly array $tags = [], public readonly ?bool $open = null) {} }
            $routes->get("/", static fn(#[Weft\Http\Query] Filter $filter): Filter => $filter);
            PHP);

        self::assertSame('{"q":"a b","page":2,"tags":["x","y"],"open":false}', self::bodyOf($server->get('/?q=a+b&page=2&tags=x&tags=y&open=false')));
        self::assertSame('{"q":"","page":1,"tags":[],"open":null}', self::bodyOf($server->get('/?q=')));
        self::assertSame(['q', 'page'], array_column(self::problem(400, $server->get('/?page=x'))['errors'], 'name'));
    }

    public function testAQueryParameterIsFoundByItsNameAsItWasSent(): void
    {
        $server = $this->serve('$routes->get("/", static fn(#[Weft\Http\Query("filter.name")] string $name, #[Weft\Http\Query("a b")] int $spaced = 0, #[Weft\Http\Query("page[size]")] int $size = 0, #[Weft\Http\Query] int $last = 0): array => [$name, $spaced, $size, $last]);');

        self::assertSame('["ada",1,2,4]', self::bodyOf($server->get('/?filter.name=ada&a+b=1&page%5Bsize%5D=2&last=3&last=4')));
        self::assertSame(['filter.name', 'a b'], array_column(self::problem(400, $server->get('/?filter_name=ada&a%20b=x'))['errors'], 'name'));
    }

    public function testAHandlerGetsTheValuesOfWhichAPathWasBuilt(): void
    {
        $server = $this->serve(self::CLASSES . <<<'PHP'
            $routes->get("/{open}/{currency}", static fn(bool $open, Currency $currency, #[Weft\Http\Query] bool $all, #[Weft\Http\Query] bool $none, #[Weft\Http\Query("c")] Currency $other): array => [$open, $currency, $all, $none, $other])->named("it");
            $routes->get("/url", static fn() => Response::text($routes->url("it", ["open" => true, "currency" => Currency::Euro, "all" => true, "none" => false, "c" => Currency::Dollar])));
            PHP);

        self::assertSame('[true,"eur",true,false,"usd"]', self::bodyOf($server->get(self::bodyOf($server->get('/url')))));
    }

    public function testTextThatIsNoUtf8IsRefused(): void
    {
        $server = $this->serve('$routes->get("/{name}", static fn(string $name, #[Weft\Http\Header] ?string $tenant, #[Weft\Http\Query] ?string $q): array => [$name, $tenant, $q])->get("/untyped/{name}", static fn(string $name) => [$name]);');

        self::assertSame('["ä","ö",null]', self::bodyOf($server->get('/%C3%A4', '-H', 'tenant: ö')));
        self::problem(404, $server->get('/%FF'));
        self::assertStatus(404, $server->get('/untyped/%FF'));
        self::assertSame(
            [['in' => 'header', 'name' => 'tenant', 'detail' => 'expected UTF-8 text, found other bytes'], ['in' => 'query', 'name' => 'q', 'detail' => 'expected UTF-8 text, found other bytes']],
            self::problem(400, $server->get('/a?q=%FF', '-H', "tenant: \xff"))['errors'],
        );
    }

    public function testAtMostAHundredFaultsAreListed(): void
    {
        $server = $this->serve(<<<'PHP'
            $routes->validator(new class implements Weft\Validation\Validator {
                public int $calls = 0;
                public function validate(object $message, array $groups): array { $this->calls++; return array_fill(0, $message->faults, new Weft\Validation\Violation("faults", "call $this->calls")); }
            });
            final class Faulty { public int $faults = 1; }
            $routes->post("/list", /** @param list<Faulty> $all */ #[Weft\Validation\Validate] static fn(#[Weft\Http\Body] array $all): array => $all)
                ->post("/one", #[Weft\Validation\Validate] static fn(#[Weft\Http\Body] Faulty $one, #[Weft\Http\Query] int $page = 1): Faulty => $one)
                ->post("/both", /** @param list<Faulty> $all */ static fn(#[Weft\Http\Body] array $all, #[Weft\Http\Query] int $page = 1): array => $all);
            PHP);

        $errors = self::problem(422, $server->get('/list', ...self::json('[' . implode(',', array_fill(0, 5_000, '{}')) . ']')))['errors'];
        self::assertCount(100, $errors);
        $errors = self::problem(422, $server->get('/one', ...self::json('{"faults":500}')))['errors'];
        self::assertCount(100, $errors);
        self::assertSame('call 101', $errors[0]['detail'], 'objects behind the last fault were validated');
        self::assertCount(100, self::problem(400, $server->get('/both?page=x', ...self::json('[' . implode(',', array_fill(0, 200, '1')) . ']')))['errors']);
    }

    public function testConstraintsAreCheckedWhereTheHandlerIsValidated(): void
    {
        $server = $this->serve(<<<'PHP'
            use Symfony\Component\Validator\Constraints as Assert;
            final class Line { public function __construct(#[Assert\Positive] public readonly int $count) {} }
            final class Register { /** @param list<Line> $lines */ public function __construct(#[Assert\Email] public readonly string $email, #[Assert\Valid] public readonly array $lines = []) {} }
            $routes->post("/checked", #[Weft\Validation\Validate] static fn(#[Weft\Http\Body] Register $register): Register => $register);
            $routes->post("/all", /** @param list<Register> $all */ #[Weft\Validation\Validate] static fn(#[Weft\Http\Body] array $all): array => $all);
            $routes->post("/unchecked", static fn(#[Weft\Http\Body] Register $register): Register => $register);
            PHP);

        $invalid = '{"email":"nobody","lines":[{"count":1},{"count":-1}]}';
        $problem = self::problem(422, $server->get('/checked', ...self::json($invalid)));
        self::assertSame(['#/email', '#/lines/1/count'], array_column($problem['errors'], 'pointer'));
        self::assertSame('This value should be positive.', $problem['errors'][1]['detail']);
        self::assertSame('#/1/email', self::problem(422, $server->get('/all', ...self::json('[{"email":"a@b.org"},{"email":"x"}]')))['errors'][0]['pointer']);
        self::assertStatus(200, $server->get('/unchecked', ...self::json($invalid)));
        self::assertStatus(200, $server->get('/checked', ...self::json('{"email":"a@example.org"}')));
    }

    public function testAViolatedConstraintIs422InTheQueryToo(): void
    {
        $server = $this->serve(<<<'PHP'
            use Symfony\Component\Validator\Constraints as Assert;
            final class Page { #[Assert\Range(min: 1, max: 100)] public readonly int $size; }
            $routes->get("/", #[Weft\Validation\Validate] static fn(#[Weft\Http\Query] Page $page): Page => $page);
            PHP);

        $problem = self::problem(422, $server->get('/?size=101'));
        self::assertSame([['in' => 'query', 'name' => 'size']], array_map(static fn(array $error): array => array_diff_key($error, ['detail' => 0]), $problem['errors']));
        self::problem(400, $server->get('/?size=many'));
    }

    public function testEveryObjectOfAHandlerIsValidated(): void
    {
        $server = $this->serve(<<<'PHP'
            use Symfony\Component\Validator\Constraints as Assert;
            final class Paging { public function __construct(#[Assert\Range(min: 1, max: 100)] public readonly int $limit = 10) {} }
            final class Sorting { public function __construct(#[Assert\EqualTo("id", groups: ["own"])] public readonly string $by = "id") {} }
            final class Purchase { public function __construct(#[Assert\Email] public readonly string $customer) {} }
            $routes->post("/query-first", #[Weft\Validation\Validate] static fn(#[Weft\Http\Query] Paging $p, #[Weft\Http\Query] Sorting $s, #[Weft\Http\Body] Purchase $o): array => [$p->limit]);
            $routes->post("/body-first", #[Weft\Validation\Validate] static fn(#[Weft\Http\Body] Purchase $o, #[Weft\Http\Query] Paging $p): array => [$p->limit]);
            #[Weft\Validation\Validate(groups: ["own"])] final class Own { public function __construct(#[Assert\EqualTo("id", groups: ["own"])] public readonly string $by = "id") {} }
            $routes->post("/by-class", static fn(#[Weft\Http\Body] Purchase $o, #[Weft\Http\Query] Own $own): array => [$own->by]);
            PHP);
        $faults = static fn(string $path, string $customer): array => array_map(
            static fn(array $error): string => $error['name'] ?? $error['pointer'],
            self::problem(422, $server->get($path, ...self::json("{\"customer\":\"$customer\"}")))['errors'],
        );

        self::assertSame(['limit', '#/customer'], $faults('/query-first?limit=101&by=name', 'nonsense'));
        self::assertSame(['#/customer'], $faults('/query-first', 'nonsense'));
        self::assertSame(['#/customer', 'limit'], $faults('/body-first?limit=101', 'nonsense'));
        self::assertSame(['limit'], $faults('/body-first?limit=101', 'ada@example.org'));
        self::assertSame(['by'], $faults('/by-class?by=name', 'nonsense'));
        self::assertSame('[7]', self::bodyOf($server->get('/query-first?limit=7', ...self::json('{"customer":"ada@example.org"}'))));
    }

    public function testObjectsInListsAndMapsOfABodyAreValidated(): void
    {
        $server = $this->serve(<<<'PHP'
            use Symfony\Component\Validator\Constraints as Assert;
            #[Weft\Validation\Validate] final class Part { public function __construct(#[Assert\Positive] public readonly int $count) {} }
            /** @param list<list<Part>> $parts */
            $routes->post("/lists", static fn(#[Weft\Http\Body] array $parts): array => []);
            /** @param array<string, Part> $parts */
            $routes->post("/map", static fn(#[Weft\Http\Body] array $parts): array => []);
            /** @param array<int, list<?Part>>|null $parts */
            $routes->post("/all", static fn(#[Weft\Http\Body] ?array $parts): array => []);
            PHP);
        $pointers = static fn(string $path, string $body): array => array_column(self::problem(422, $server->get($path, ...self::json($body)))['errors'], 'pointer');

        self::assertSame(['#/0/1/count', '#/2/0/count'], $pointers('/lists', '[[{"count":1},{"count":0}],[],[{"count":0}]]'));
        self::assertSame(['#/a~1b~0c/count', '#//count'], $pointers('/map', '{"a/b~c":{"count":0},"":{"count":0},"d":{"count":1}}'));
        self::assertSame(['#/7/1/count'], $pointers('/all', '{"7":[null,{"count":0}],"8":[]}'));
        foreach (['/lists' => '[[{"count":1}],[]]', '/map' => '{}', '/all' => 'null'] as $path => $body) {
            self::assertStatus(200, $server->get($path, ...self::json($body)));
        }
    }

    public function testAFaultOfAMapNamesItsWholeKey(): void
    {
        $server = $this->serve(<<<'PHP'
            use Symfony\Component\Validator\Constraints as Assert;
            final class Box { public function __construct(#[Assert\Positive] public readonly int $count) {} }
            final class Shelf { /** @param array<string, Box> $boxes @param array<string, list<Box>> $rows */ public function __construct(#[Assert\Valid] public readonly array $boxes = [], #[Assert\Valid] public readonly array $rows = []) {} }
            $routes->post("/", #[Weft\Validation\Validate] static fn(#[Weft\Http\Body] Shelf $shelf): array => []);
            PHP);
        $pointers = static fn(string $body): array => array_column(self::problem(422, $server->get('/', ...self::json($body)))['errors'], 'pointer');

        self::assertSame(['#/boxes/a.b/count', '#/boxes/c~1d~0e/count', '#/boxes//count', '#/boxes/f%5B1%5D/count', '#/rows/g.h/1/count'], $pointers(
            '{"boxes":{"a.b":{"count":0},"c/d~e":{"count":0},"":{"count":0},"f[1]":{"count":0}},"rows":{"g.h":[{"count":1},{"count":0}]}}',
        ));
    }

    public function testAFaultOfTheQueryShowsNoNamesOfPhp(): void
    {
        $server = $this->serve(self::CLASSES . <<<'PHP'
            enum Level: int { case Low = 1; case High = 2; }
            final class Filter { /** @param list<Level> $levels */ public function __construct(public readonly ?Level $level = null, public readonly array $levels = [], public readonly ?int $page = null) {} }
            $routes->get("/", static fn(#[Weft\Http\Query] ?Level $n = null, #[Weft\Http\Query] ?int $i = null, #[Weft\Http\Header] ?Currency $currency = null): array => [])
                ->get("/object", static fn(#[Weft\Http\Query] Filter $filter): array => []);
            PHP);
        $details = static fn(string $path, string ...$arguments): array => array_column(self::problem(400, $server->get($path, ...$arguments))['errors'], 'detail', 'name');

        self::assertSame(['n' => 'expected one of 1, 2', 'i' => 'expected int, found list', 'currency' => 'expected one of "eur", "usd"'], $details('/?n[]=1&i[]=1', '-H', 'currency: gbp'));
        self::assertSame(['n' => 'expected one of 1, 2', 'i' => 'expected int, found text'], $details('/?n=3&i=x'));
        self::assertSame(['level' => 'expected one of 1, 2', 'levels' => 'expected one of 1, 2', 'page' => 'expected int, found list'], $details('/object?level[]=1&levels=1&levels=x&page[]=1'));
    }

    public function testAValidatorOfTheApplicationReplacesSymfonys(): void
    {
        $server = $this->serve(<<<'PHP'
            $routes->validator(new class implements Weft\Validation\Validator { public function validate(object $message, array $groups): array { return $message->age > 17 ? [] : [new Weft\Validation\Violation("age", "too young for " . implode($groups))]; } });
            final class Person { public int $age; }
            $routes->post("/", #[Weft\Validation\Validate(groups: ["bar"])] static fn(#[Weft\Http\Body] Person $person): Person => $person);
            PHP);

        self::assertSame('too young for bar', self::problem(422, $server->get('/', ...self::json('{"age":7}')))['errors'][0]['detail']);
        self::assertStatus(200, $server->get('/', ...self::json('{"age":18}')));
    }

    public function testTheReturnValueOfAHandlerBecomesAResponse(): void
    {
        $server = $this->serve(self::CLASSES . <<<'PHP'
            $routes->get("/void", static function (): void {})
                ->get("/null", static fn(): ?Item => null)
                ->get("/nothing", static fn() => null)
                ->get("/undeclared", static fn() => ["a" => new Item("x", 1), "b" => [Currency::Euro]])
                ->get("/created", #[Weft\Http\Status(201)] static fn(): Item => new Item("x", 1))
                ->get("/accepted", #[Weft\Http\Status(202)] static function (): void {})
                ->get("/own", static fn(): JsonSerializable => new ArrayOf)
                ->get("/response", static fn(): Response|Item => Response::text("plain"));
            final class ArrayOf implements JsonSerializable { public function jsonSerialize(): array { return [1]; } }
            PHP);

        foreach (['/void', '/null', '/nothing'] as $path) {
            self::assertStatus(204, $server->get($path));
        }
        self::assertSame('{"a":{"sku":"x","count":1,"price":1.0},"b":["eur"]}', self::bodyOf($server->get('/undeclared')));
        self::assertStatus(201, $server->get('/created'));
        self::assertStatus(202, $server->get('/accepted'));
        self::assertSame('[1]', self::bodyOf($server->get('/own')));
        self::assertSame('plain', self::bodyOf($server->get('/response')));
    }

    public function testAnArrayIsEncodedAsTheTypeThatIsDeclared(): void
    {
        $encode = static fn(\Closure $handler): string => (new Router())->get('/', $handler)->routes()[0]->plan->result->response($handler())->body;

        self::assertSame('{}', $encode(/** @return array<string, int> */ static fn(): array => []));
        self::assertSame('{}', $encode(/** @return array<string, int>|null */ static fn(): ?array => []));
        self::assertSame('{"0":"a","1":"b"}', $encode(/** @return array<int, string> */ static fn(): array => ['a', 'b']));
        self::assertSame('[{},{"a":[]}]', $encode(/** @return list<array<string, list<int>>> */ static fn(): array => [[], ['a' => []]]));
        self::assertSame('{"a":{"nested":null},"b":[]}', $encode(/** @return array<string, mixed> */ static fn(): array => ['a' => new Nested(), 'b' => []]));
        self::assertSame('[]', $encode(/** @return list<int> */ static fn(): array => []));
        self::assertSame('[]', $encode(static fn(): array => []));
    }

    public function testMiddlewareSeesTheResponseMadeOfAnObject(): void
    {
        $server = $this->serve(self::CLASSES . '$routes->use(static fn(Request $request, Closure $next): Response => $next($request)->withHeader("x-seen", "yes"))->get("/", static fn() => new Item("a", 1));');

        $response = $server->get('/');

        self::assertSame('yes', self::field($response, 'x-seen'));
        self::assertSame('{"sku":"a","count":1,"price":1.0}', self::bodyOf($response));
    }

    public function testAFailureOfATypedHandlerIsProblemDetailsAlsoIfItsMiddlewareFails(): void
    {
        $server = $this->serve(<<<'PHP'
            $routes->group("/in", static fn(Router $group) => $group->get("/{id}", static fn(int $id): array => throw new HttpException(409, "taken")), static fn(Request $request, Closure $next) => $request->header("authorization") === null ? throw new HttpException(401, "who are you?", ["www-authenticate" => "Bearer"]) : $next($request));
            $routes->get("/untyped", static fn() => throw new HttpException(409, "taken"))->get("/broken", static fn(): array => throw new LogicException("secret"));
            PHP);

        $refused = $server->get('/in/7');
        self::assertSame('who are you?', self::problem(401, $refused)['detail']);
        self::assertSame('Bearer', self::field($refused, 'www-authenticate'));
        self::assertSame(['type' => 'about:blank', 'title' => 'Conflict', 'status' => 409, 'detail' => 'taken'], self::problem(409, $server->get('/in/7', '-H', 'authorization: x')));
        self::assertSame("taken\n", self::bodyOf($server->get('/untyped')));
        self::problem(409, $server->get('/untyped', '-H', 'accept: application/json'));
        self::problem(404, $server->get('/nowhere', '-H', 'accept: application/json'));
        self::assertSame(['type' => 'about:blank', 'title' => 'Internal Server Error', 'status' => 500], self::problem(500, $server->get('/broken')));
    }

    public function testAWebSocketTakesQueryParametersAndRefusesFaultsBeforeItsHandshake(): void
    {
        $server = $this->serve('$routes->websocket("/chat/{room}", static fn(WebSocket $socket, string $room, #[Weft\Http\Query] int $since) => $socket->send("$room $since"));');

        self::problem(400, $server->get('/chat/a?since=x', ...self::HANDSHAKE));
    }

    public function testTheQueryOfAWebSocketIsValidatedBeforeItsHandshake(): void
    {
        $server = $this->serve(<<<'PHP'
            use Symfony\Component\Validator\Constraints as Assert;
            final class Feed { public function __construct(#[Assert\Positive] public readonly int $since, #[Assert\Choice(choices: ["eu", "us"])] public readonly string $region = "eu") {} }
            $routes->websocket("/feed", #[Weft\Validation\Validate] static fn(WebSocket $socket, #[Weft\Http\Query] Feed $feed) => $socket->send("$feed->since"));
            PHP);

        $names = array_column(self::problem(422, $server->get('/feed?since=-1&region=asia', ...self::HANDSHAKE))['errors'], 'name');

        self::assertSame(['since', 'region'], $names);
        self::assertSame([1, '7'], WebSocketClient::open($server, '/feed?since=7')->read());
    }

    /** @dataProvider badSignatures */
    #[DataProvider('badSignatures')]
    public function testABadSignatureIsAnErrorWhenTheRouteIsAdded(string $message, \Closure $handler): void
    {
        try {
            (new Router())->post('/orders/{id}', $handler);
            self::fail('it was taken');
        } catch (InvalidRouteError $error) {
            self::assertStringContainsString($message, $error->getMessage());
            self::assertMatchesRegularExpression('~^The handler Closure \S+TypedHandlerTest\.php:\d+ of "/orders/\{id\}" ~', $error->getMessage());
        }
    }

    /** @return iterable<string, array{string, \Closure}> */
    public static function badSignatures(): iterable
    {
        yield 'no source' => ['$page, which has no source', static fn(int $page) => null];
        yield 'a service' => ['has the parameter $database, which is a service (Weft\Sql\Database); of those a handler gets none: capture it, by `use ($database)` of a closure', static fn(\Weft\Sql\Database $database) => null];
        yield 'an interface' => ['has the parameter $log, which is a service (Psr\Log\LoggerInterface)', static fn(\Psr\Log\LoggerInterface $log) => null];
        yield 'data or a service' => ['has no source: only the Request comes by its type. Mark it #[Body], #[Query] or #[Header] if the request contains it; if it is a service, capture it', static fn(Documented $in) => null];
        yield 'a request of PSR-7' => ['has the parameter $request, which is a request of another kind (Psr\Http\Message\ServerRequestInterface): take Weft\Http\Request; Weft\Http\PsrHandler serves', static fn(\Psr\Http\Message\ServerRequestInterface $request) => null];
        yield 'a request of Symfony' => ['take Weft\Http\Request; Weft\Bridge\Symfony\SymfonyHandler serves', static fn(\Symfony\Component\HttpFoundation\Request $request) => null];
        yield 'a request of Laravel' => ['(Illuminate\Http\Request): take Weft\Http\Request; `php artisan weft:serve` serves', static fn(\Illuminate\Http\Request $request) => null];
        yield 'two bodies' => ['two parameters with #[Body]', static fn(#[Body] Nested $a, #[Body] Nested $b) => null];
        yield 'a closure in the body' => ['which has the type Closure', static fn(#[Body] \Closure $a) => null];
        yield 'a plain array' => ['@param list<T> $a', static fn(#[Body] array $a) => null];
        yield 'a plain array or null' => ['which is a plain array; declare its elements with @param list<T> $a', static fn(#[Body] ?array $a) => null];
        yield 'a plain array in a class' => ['which contains Weft\Tests\Http\Tagged, which cannot be decoded: property $tags is a plain array; declare its elements with @var list<T> or array<string, T> at Weft\Tests\Http\Tagged::$tags, or with @param list<T> $tags at its constructor', static fn(#[Body] Tagged $o) => null];
        yield 'a plain array in a class that is returned' => ['returns a type that contains Weft\Tests\Http\Tagged, which cannot be encoded: property $tags is a plain array; declare its elements with @var list<T> or array<string, T> at Weft\Tests\Http\Tagged::$tags, or with @param', static fn(): Tagged => throw new \LogicException()];
        yield 'a plain array or null that is returned' => ['returns a type that is a plain array; declare its elements with @return list<T> or array<string, T>', static fn(): ?array => null];
        yield 'an object in a header' => ['cannot be a header field', static fn(#[Header] Nested $a) => null];
        yield 'no such path parameter' => ['the path has no {nr}', static fn(#[Path] int $nr) => null];
        yield 'an object in the path' => ['a path parameter is a string', static fn(Nested $id) => null];
        yield 'nested objects in a query' => ['$nested (object', static fn(#[Query] Nested $a) => null];
        yield 'by reference' => ['taken by reference', static fn(#[Query] int &$a) => null];
        yield 'text as the response' => ['returns string', static fn(): string => ''];
        yield 'a generator' => ['is a generator, which would return before its body runs; to stream, return Response::stream()', static function (): \Generator {
            yield 1;
        }];
        yield 'a generator that does not say so' => ['is a generator, which would return before its body runs', static function () {
            yield 1;
        }];
        yield 'an object without JSON' => ['returns a type that', static fn(): \ArrayObject => new \ArrayObject()];
        yield 'a class that does not exist' => ['has the parameter $in, which contains Weft\Tests\Http\Inn, a class that does not exist', static fn(#[Body] Inn $in) => null];
        yield 'a list of them' => ['which contains Weft\Tests\Http\Inn, a class that does not exist', /** @param list<Inn> $in */ static fn(#[Body] array $in) => null];
        yield 'a response that does not exist' => ['declares the return type Weft\Tests\Http\Outt, which does not exist', static fn(): Outt => throw new \LogicException()];
        yield 'a class with a property that has no JSON' => ['which contains ArrayObject, which cannot be decoded: it is an internal class of PHP', static fn(#[Body] \ArrayObject $in) => null];
        yield 'data without objects to validate' => ['#[Validate], but no parameter', /** @param array<string, list<mixed>> $in */ #[Validate] static fn(#[Body] array $in) => null];
        yield 'nothing to validate' => ['#[Validate], but no parameter', #[Validate] static fn() => null];
        yield 'a misspelt attribute' => ['is marked with #[Weft\Tests\Http\Validat], which is not a class. Is #[Weft\Validation\Validate] meant? Check the spelling', #[Validat] static fn(#[Body] Nested $in) => null];
        yield 'an attribute that is not imported' => ['is marked with #[Weft\Tests\Http\Email], which is not a class. Is #[Symfony\Component\Validator\Constraints\Email] meant?', #[Email] static fn() => null];
        yield 'one whose namespace is not imported' => ['is marked with #[Weft\Tests\Http\Http\Status], which is not a class. Is #[Weft\Http\Status] meant?', #[Http\Status(201)] static fn() => null];
        yield 'a misspelt status' => ['is marked with #[Weft\Tests\Http\Stats], which is not a class. Is #[Weft\Http\Status] meant?', #[Stats(201)] static fn() => null];
        yield 'a misspelt attribute of a parameter' => ['has the parameter $in, which is marked with #[Weft\Tests\Http\Bdy], which is not a class. Is #[Weft\Http\Body] meant?', static fn(#[Bdy] Nested $in) => null];
        yield 'an attribute of the bus on a parameter' => ['has the parameter $in, which is marked with #[Weft\Tests\Http\Route], which is not a class. Check the spelling', static fn(#[Route] Nested $in) => null];
        yield 'an attribute of the bus on a handler' => ['is marked with #[Weft\Tests\Http\Timout], which is not a class. Check the spelling', #[Timout] static fn(#[Body] Nested $in) => null];
        yield 'an attribute of parameters on a handler' => ['is marked with #[Weft\Tests\Http\Qery], which is not a class. Check the spelling', #[Qery] static fn(#[Body] Nested $in) => null];
        yield 'a second one of a parameter' => ['has the parameter $x, which is marked with #[Weft\Tests\Http\Validat], which', static fn(#[Query, Validat(min: 10)] int $x) => null];
        yield 'a misspelt constraint' => ['has the parameter $in, which contains Weft\Tests\Http\MisspeltConstraint, which cannot be decoded: property $email is marked with #[Symfony\Component\Validator\Constraints\Emial], which is not a class. Is #[Symfony\Component\Validator\Constraints\Email] meant?', static fn(#[Body] MisspeltConstraint $in) => null];
        yield 'a misspelt constraint in a query' => ['property $email is marked with', static fn(#[Query] MisspeltConstraint $in) => null];
        yield 'a misspelt constraint in a list' => ['property $email is marked with', /** @param list<MisspeltConstraint> $in */ static fn(#[Body] array $in) => null];
        yield 'validation of a property' => ['property $count has an invalid #[Weft\Validation\Validate]: Attribute "Weft\Validation\Validate" cannot target property', static fn(#[Body] ValidatedProperty $in) => null];
        yield 'arguments that an attribute does not have' => ['has an invalid #[Weft\Validation\Validate]: Unknown named parameter $group. Its arguments are passOn, event, groups', #[Validate(group: 'bar')] static fn(#[Body] Nested $in) => null];
        yield 'a status of a failure' => ['has an invalid #[Weft\Http\Status]: The status of a handler must be from 200 to 299', #[Status(404)] static fn() => null];
        yield 'an argument of #[Body]' => ['has the parameter $in, which has an invalid #[Weft\Http\Body]', static fn(#[Body('in')] Nested $in) => null];
        yield 'no name of a field' => ['which is not a token', static fn(#[Header('a b')] string $a) => null];
    }

    public function testAttributesOfOthersThatAreNotInstalledAreLeftAlone(): void
    {
        $routes = (new Router())->post('/', #[\Vendor\Status, Description('adds')] static fn(#[Body] Documented $in, #[\SensitiveParameter, \Vendor\Query] #[Query] string $token = ''): array => []);

        self::assertCount(1, $routes->routes());
    }

    public function testABodyOfAMethodWithoutOneIsRefused(): void
    {
        foreach ([['GET'], ['head'], ['POST', 'GET']] as $methods) {
            try {
                (new Router())->route($methods, '/', static fn(#[Body] Documented $in): array => []);
                self::fail('it was taken');
            } catch (InvalidRouteError $error) {
                self::assertStringContainsString('has a parameter with #[Body], but a request of ' . \strtoupper($methods[\count($methods) - 1]) . ' has no body (RFC 9110, section 9.3)', $error->getMessage());
            }
        }
        self::assertCount(1, (new Router())->delete('/', static fn(#[Body] Documented $in): array => [])->routes());
    }

    public function testAnOptionalBodyIsAcceptedBesideAMethodThatHasOne(): void
    {
        $optional = static fn(#[Body] ?Documented $in = null): array => [];

        self::assertCount(1, (new Router())->route(['GET', 'HEAD', 'POST'], '/', $optional)->routes());
        $refused = [
            'give it a default or a type with null, take #[Query], or leave GET to another handler' => [['GET', 'POST'], static fn(#[Body] Documented $in): array => []],
            'section 9.3): take #[Query], or POST' => [['GET', 'HEAD'], $optional],
        ];
        foreach ($refused as $message => [$methods, $handler]) {
            try {
                (new Router())->route($methods, '/', $handler);
                self::fail('it was taken');
            } catch (InvalidRouteError $error) {
                self::assertStringContainsString($message, $error->getMessage());
            }
        }
    }

    public function testAMethodWithAMisspeltAttributeIsRefused(): void
    {
        $this->expectException(InvalidRouteError::class);
        $this->expectExceptionMessage('is marked with #[Weft\Tests\Http\Validat], which is not a class');

        (new Router())->post('/', (new Misspelling())->add(...));
    }

    public function testAWebSocketWithAMisspeltAttributeIsRefused(): void
    {
        $this->expectException(InvalidRouteError::class);
        $this->expectExceptionMessage('has the parameter $page, which is marked with #[Weft\Tests\Http\Qery], which is not a class');

        (new Router())->websocket('/chat', static function (WebSocket $socket, #[Qery] int $page = 1): void {});
    }

    public function testAGeneratorAsTheHandlerOfAWebSocketIsRefused(): void
    {
        $this->expectException(InvalidRouteError::class);
        $this->expectExceptionMessage('is a generator, which would return before its body runs');

        (new Router())->websocket('/chat', static function (WebSocket $socket) {
            yield $socket->receive();
        });
    }

    public function testAFileThatAMethodIncludesKeepsItsImportsAndIsNotValidatedAsTheMethodsClass(): void
    {
        $plan = (new Router())->post('/', Including::load(__DIR__ . '/Fixtures/handler.php'))->routes()[0]->plan;

        self::assertInstanceOf(BodyArgument::class, $plan->arguments[0]);
        self::assertStringContainsString(Nested::class, $plan->arguments[0]->type->name());
        self::assertSame([], $plan->validations);
        self::assertCount(1, (new Router())->post('/', Including::handler())->routes()[0]->plan->validations);
    }

    public function testAStatusThatIsNoSuccessIsRefused(): void
    {
        $this->expectException(\ValueError::class);

        new Status(404);
    }

    /** @return list<string> arguments of curl */
    private static function json(string $body, string ...$headers): array
    {
        $arguments = ['-X', 'POST', '-H', 'content-type: application/json', '--data-binary', $body];
        foreach ($headers as $header) {
            array_push($arguments, '-H', $header);
        }

        return $arguments;
    }

    /** @return array<string, mixed> */
    private static function problem(int $status, string $response): array
    {
        self::assertStatus($status, $response);
        self::assertSame('application/problem+json', self::field($response, 'content-type'));

        return json_decode(self::bodyOf($response), true, flags: JSON_THROW_ON_ERROR);
    }
}

final class Nested
{
    public function __construct(public readonly ?Nested $nested = null)
    {
    }
}

#[Validate]
final class Including
{
    public static function load(string $file): \Closure
    {
        return require $file;
    }

    public static function handler(): \Closure
    {
        return static fn(#[Body] Nested $nested): Nested => $nested;
    }
}

final class Tagged
{
    public function __construct(public readonly ?array $tags = null)
    {
    }
}

final class MisspeltConstraint
{
    public function __construct(#[Assert\Emial] public readonly string $email)
    {
    }
}

final class ValidatedProperty
{
    #[Validate(min: 1)]
    public int $count;
}

#[\Vendor\Entity, Resource]
final class Documented
{
    #[\Vendor\Column, Example('x')]
    public string $text;
}

final class Misspelling
{
    #[Validat]
    public function add(#[Body] Documented $in): void
    {
    }
}
