<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use PHPUnit\Framework\TestCase;
use Symfony\Component\Validator\Constraints as Assert;
use Weft\Http\Body;
use Weft\Http\Header;
use Weft\Http\OpenApi;
use Weft\Http\Query;
use Weft\Http\Request;
use Weft\Http\Response;
use Weft\Http\Router;
use Weft\Http\Status;
use Weft\Validation\Validate;

final class OpenApiTest extends TestCase
{
    public function testEachArgumentAndResultIsDescribed(): void
    {
        $document = self::document(self::router());
        $operation = $document['paths']['/stays/{room}']['post'];

        self::assertSame(['3.1.0', ['title' => 'Hotel', 'version' => '2.0.0', 'description' => 'Rooms.'], [['url' => 'https://example.org']]], [$document['openapi'], $document['info'], $document['servers']]);
        self::assertSame(['book', 'Books a room', 'Twice is no error.'], [$operation['operationId'], $operation['summary'], $operation['description']]);
        self::assertEquals(
            [
                ['name' => 'room', 'in' => 'path', 'required' => true, 'schema' => ['type' => 'string', 'pattern' => '^(?:[a-z]+)$'], 'description' => 'its number'],
                ['name' => 'tags', 'in' => 'query', 'required' => true, 'schema' => ['type' => 'array', 'items' => ['$ref' => '#/components/schemas/Board']], 'style' => 'form', 'explode' => true],
                ['name' => 'nights', 'in' => 'query', 'schema' => ['type' => 'integer', 'format' => 'int64', 'default' => 1], 'description' => 'how many'],
                ['name' => 'if-match', 'in' => 'header', 'schema' => ['type' => 'string']],
            ],
            $operation['parameters'],
        );
        self::assertSame(['required' => true, 'content' => ['application/json' => ['schema' => ['$ref' => '#/components/schemas/StayInput']]]], $operation['requestBody']);
        self::assertSame(['201', '400', '404', '415', '422', 'default'], array_map(strval(...), array_keys($operation['responses'])));
        self::assertSame('#/components/schemas/Stay', $operation['responses'][201]['content']['application/json']['schema']['$ref']);
        self::assertSame('#/components/schemas/Problem', $operation['responses'][422]['content']['application/problem+json']['schema']['$ref']);
    }

    public function testClassesAndEnumsAreSchemasWithTheirConstraintsAndWords(): void
    {
        $schemas = self::document(self::router())['components']['schemas'];

        self::assertSame(['type' => 'string', 'enum' => ['none', 'half'], 'description' => 'What is for dinner.'], $schemas['Board']);
        $input = $schemas['StayInput'];
        self::assertSame(['guest', 'age'], $input['required']);
        self::assertSame('A stay of a guest.', $input['description']);
        self::assertSame(['type' => 'string', 'maxLength' => 20, 'pattern' => '^[a-z/]+$', 'description' => 'who sleeps here'], $input['properties']['guest']);
        self::assertSame(['type' => 'integer', 'format' => 'int64', 'minimum' => 18, 'maximum' => 150], $input['properties']['age']);
        self::assertSame(['$ref' => '#/components/schemas/Board', 'default' => 'half'], $input['properties']['board']);
        self::assertSame(['type' => ['string', 'null'], 'format' => 'date-time'], $input['properties']['until']);
        self::assertSame(['anyOf' => [['$ref' => '#/components/schemas/StayInput'], ['type' => 'null']]], $input['properties']['next']);
        self::assertSame(['type' => 'object', 'additionalProperties' => ['type' => 'array', 'items' => ['type' => 'number']]], $input['properties']['rates']);
        self::assertSame(['guest', 'age', 'board', 'until', 'next', 'rates', 'extra'], $schemas['Stay']['required']);
        self::assertSame([], $schemas['Stay']['properties']['extra']);
    }

    public function testTheParametersOfAQueryObjectHaveItsConstraintsAndWords(): void
    {
        $router = (new Router())
            ->get('/checked', #[Validate] static fn(#[Query] Page $page): Page => $page)
            ->get('/unchecked', static fn(#[Query] Page $page): Page => $page);
        $paths = self::document($router)['paths'];

        self::assertSame([
            ['name' => 'size', 'in' => 'query', 'required' => true, 'schema' => ['type' => 'integer', 'format' => 'int64', 'minimum' => 1, 'maximum' => 100], 'description' => 'How many at most.'],
            ['name' => 'q', 'in' => 'query', 'schema' => ['type' => 'string', 'maxLength' => 3, 'default' => 'a'], 'description' => 'what to look for'],
            ['name' => 'tags', 'in' => 'query', 'schema' => ['type' => 'array', 'items' => ['type' => 'string'], 'maxItems' => 2, 'default' => []], 'style' => 'form', 'explode' => true],
        ], $paths['/checked']['get']['parameters']);
        self::assertSame(['200', '400', '422', 'default'], array_map(strval(...), array_keys($paths['/checked']['get']['responses'])));
        self::assertSame(['type' => 'integer', 'format' => 'int64'], $paths['/unchecked']['get']['parameters'][0]['schema']);
        self::assertSame(['200', '400', 'default'], array_map(strval(...), array_keys($paths['/unchecked']['get']['responses'])));
    }

    public function testAnArrayThatIsDocumentedAsNullableIsNullableOnce(): void
    {
        $router = (new Router())->post('/', /** @param list<int>|null $ids */ static fn(#[Body] ?array $ids): array => []);
        $schema = self::document($router)['paths']['/']['post']['requestBody']['content']['application/json']['schema'];

        self::assertSame(['type' => ['array', 'null'], 'items' => ['type' => 'integer', 'format' => 'int64']], $schema);
    }

    public function testADefaultThatJsonCannotRepresentIsLeftOut(): void
    {
        $router = (new Router())
            ->get('/', static fn(#[Query] float $max = \INF, #[Query] int $page = 1): array => [])
            ->post('/', static fn(#[Body] Limited $in): array => []);
        $document = self::document($router);

        self::assertSame([['type' => 'number'], ['type' => 'integer', 'format' => 'int64', 'default' => 1]], array_column($document['paths']['/']['get']['parameters'], 'schema'));
        self::assertSame(['type' => 'number'], $document['components']['schemas']['Limited']['properties']['max']);
    }

    public function testConstraintsAreThoseThatTheHandlerChecks(): void
    {
        $router = (new Router())
            ->post('/people', #[Validate] static fn(#[Body] Resident $in): Resident => $in)
            ->post('/admins', #[Validate(groups: ['admin'])] static fn(#[Body] Resident $in): Resident => $in)
            ->post('/unchecked', static fn(#[Body] Resident $in): Resident => $in)
            ->get('/query', #[Validate(groups: ['admin'])] static fn(#[Query] Named $in): array => []);
        $document = self::document($router);
        $schemas = $document['components']['schemas'];
        $body = static fn(string $path): string => substr($document['paths'][$path]['post']['requestBody']['content']['application/json']['schema']['$ref'], 21);
        $response = static fn(string $path): string => substr($document['paths'][$path]['post']['responses'][200]['content']['application/json']['schema']['$ref'], 21);

        self::assertSame(['ResidentInput', 'ResidentInput2', 'Resident'], [$body('/people'), $body('/admins'), $body('/unchecked')]);
        self::assertSame(['Resident', 'Resident', 'Resident'], [$response('/people'), $response('/admins'), $response('/unchecked')]);
        $text = ['type' => 'string'];
        self::assertSame(
            [$text, ['$ref' => '#/components/schemas/Home'], ['type' => 'array', 'items' => ['$ref' => '#/components/schemas/HomeInput']], ['type' => ['string', 'null'], 'enum' => ['m', 'f', null]]],
            array_values($schemas['ResidentInput']['properties']),
        );
        self::assertSame(
            [$text + ['minLength' => 5], ['$ref' => '#/components/schemas/Home'], ['type' => 'array', 'items' => ['$ref' => '#/components/schemas/Home']], ['type' => ['string', 'null']]],
            array_values($schemas['ResidentInput2']['properties']),
        );
        self::assertSame($text + ['minLength' => 10], $schemas['HomeInput']['properties']['street']);
        self::assertSame($text, $schemas['Home']['properties']['street']);
        self::assertSame([$text, ['type' => ['string', 'null']]], [$schemas['Resident']['properties']['nick'], $schemas['Resident']['properties']['sex']]);
        self::assertSame([['type' => 'string', 'maxLength' => 3], $text], array_column($document['paths']['/query']['get']['parameters'], 'schema'));
    }

    public function testChoicesAndCountsAreThoseOfTheElements(): void
    {
        $router = (new Router())->post('/', #[Validate] static fn(#[Body] Chosen $in): array => [])->get('/', #[Validate] static fn(#[Query] Named $in): array => []);
        $document = self::document($router);

        self::assertSame([
            'tags' => ['type' => 'array', 'items' => ['type' => 'string', 'enum' => ['a', 'b']], 'minItems' => 1],
            'boards' => ['type' => 'array', 'items' => ['$ref' => '#/components/schemas/Board', 'enum' => ['half']]],
            'rates' => ['type' => 'object', 'additionalProperties' => ['type' => 'number'], 'maxProperties' => 2, 'minProperties' => 1],
            'board' => ['anyOf' => [['$ref' => '#/components/schemas/Board'], ['type' => 'null']], 'enum' => ['none', null]],
            'any' => ['type' => 'number'],
        ], $document['components']['schemas']['Chosen']['properties']);
        self::assertSame(['type' => 'string', 'enum' => ['asc', 'desc']], $document['paths']['/']['get']['parameters'][1]['schema']);
    }

    public function testAnExpressionThatEcma262DoesNotHaveIsNoPattern(): void
    {
        $paths = self::document((new Router())
            ->get('/a/{id:(?i)[a-z]++}', static fn(string $id): array => [])
            ->get('/b/{id:[[:alpha:]]+}', static fn(string $id): array => [])
            ->get('/c/{id:[a-f]{2}}', static fn(string $id): array => []))['paths'];

        self::assertSame(['type' => 'string'], $paths['/a/{id}']['get']['parameters'][0]['schema']);
        self::assertSame(['type' => 'string'], $paths['/b/{id}']['get']['parameters'][0]['schema']);
        self::assertSame(['type' => 'string', 'pattern' => '^(?:[a-f]{2})$'], $paths['/c/{id}']['get']['parameters'][0]['schema']);
    }

    public function testParametersThatAreDocumentedInOneLineHaveTheirOwnWords(): void
    {
        $router = (new Router())->get('/', /** @param int $from the first @param int $to @return list<int> */ static fn(#[Query] int $from, #[Query] int $to): array => []);
        $parameters = self::document($router)['paths']['/']['get']['parameters'];

        self::assertSame(['the first'], array_column($parameters, 'description'));
    }

    public function testRoutesWithoutTypesAreThereAndFilesAreNot(): void
    {
        $paths = self::document(self::router())['paths'];

        self::assertSame(['/stays/{room}', '/plain/{path}', '/admin/stays'], array_keys($paths));
        self::assertSame(['get', 'put'], array_keys($paths['/plain/{path}']));
        self::assertSame('getPlainByPath', $paths['/plain/{path}']['get']['operationId']);
        self::assertSame([200 => ['description' => 'OK']], $paths['/plain/{path}']['get']['responses']);
        self::assertSame(['204', 'default'], array_map(strval(...), array_keys($paths['/admin/stays']['delete']['responses'])));
    }

    public function testRoutesThatDifferInTheExpressionsOfAPathAreOneOperationWithAlternatives(): void
    {
        $paths = self::document(self::alternatives())['paths'];

        self::assertSame(['/t/{id}', '/t/{id}/x'], array_keys($paths));
        self::assertSame(['get', 'delete'], array_keys($paths['/t/{id}']));
        $get = $paths['/t/{id}']['get'];
        self::assertSame(['getTById', 'By number', 'Alternative: By name'], [$get['operationId'], $get['summary'], $get['description']]);
        self::assertEquals([
            ['name' => 'id', 'in' => 'path', 'required' => true, 'schema' => ['anyOf' => [['type' => 'integer', 'format' => 'int64'], ['type' => 'string', 'pattern' => '^(?:[a-z]+)$'], ['type' => 'string', 'pattern' => '^(?:[A-Z]+)$']]]],
            ['name' => 'page', 'in' => 'query', 'required' => false, 'schema' => ['type' => 'integer', 'format' => 'int64']],
        ], $get['parameters']);
        self::assertSame(['200', '204', '400', '404', 'default'], array_map(strval(...), array_keys($get['responses'])));
        self::assertSame(['anyOf' => [['type' => 'array', 'items' => ['type' => 'integer', 'format' => 'int64']], ['$ref' => '#/components/schemas/Page']]], $get['responses'][200]['content']['application/json']['schema']);
        self::assertSame('id', $paths['/t/{id}']['delete']['parameters'][0]['name']);
        self::assertSame('id', $paths['/t/{id}/x']['get']['parameters'][0]['name']);
        self::assertSame(['required' => false, 'content' => ['application/json' => ['schema' => ['$ref' => '#/components/schemas/PageInput']]]], $paths['/t/{id}/x']['post']['requestBody']);
    }

    public function testAnOptionalBodyIsNotRequiredAndGetHasNone(): void
    {
        $router = (new Router())->route(['GET', 'POST'], '/find', static fn(#[Body] ?Page $page): array => []);
        $find = self::document($router)['paths']['/find'];

        self::assertFalse($find['post']['requestBody']['required']);
        self::assertArrayNotHasKey('requestBody', $find['get']);
        self::assertSame(['200', 'default'], array_map(strval(...), array_keys($find['get']['responses'])));
    }

    public function testAPublicValidatorAcceptsTheDocument(): void
    {
        $tool = \dirname(__DIR__, 2) . '/var/openapi/python/bin/openapi-spec-validator';
        if (!is_file($tool)) {
            self::markTestSkipped('openapi-spec-validator is not installed: scripts/openapi-tools');
        }
        $file = (string) tempnam(sys_get_temp_dir(), 'weft');
        foreach ([self::router(), self::alternatives(), new Router()] as $router) {
            file_put_contents($file, $router->openApiDocument());
            exec("$tool --validation-errors all $file 2>&1", $output, $code);
            self::assertSame(0, $code, implode("\n", $output));
        }
        // So that a validator that accepts anything does not count.
        file_put_contents($file, str_replace('"in": "header"', '"in": "nowhere"', self::router()->openApiDocument()));
        exec("$tool $file 2>&1", $output, $code);
        unlink($file);
        self::assertNotSame(0, $code);
    }

    private static function router(): Router
    {
        /**
         * Books a room.
         *
         * Twice is no error.
         *
         * @param string $room its number
         * @param int $nights how
         *     many
         * @param list<Board> $tags
         */
        $book = #[Status(201)] static fn(string $room, #[Body] Stay $stay, #[Query] array $tags, #[Query] int $nights = 1, #[Header] ?string $ifMatch = null): Stay => $stay;
        $router = new Router();

        return $router->openApi('/openapi.json', new OpenApi('Hotel', '2.0.0', 'Rooms.', ['https://example.org']))
            ->post('/stays/{room:[a-z]+}', $book)->named('book')
            ->route(['GET', 'PUT'], '/plain/{path:.+}', static fn(Request $request) => Response::text(''))
            ->static('/files', __DIR__)
            ->websocket('/chat', static fn() => null)
            ->group('/admin', static fn(Router $group) => $group->delete('/stays', static function (): void {}));
    }

    private static function alternatives(): Router
    {
        /**
         * By number
         *
         * @return list<int>
         */
        $byNumber = static fn(int $id, #[Query] int $page): array => [];
        /** By name */
        $byName = static fn(string $name): ?Page => null;

        return (new Router())
            ->get('/t/{id:\d+}', $byNumber)
            ->get('/t/{name:[a-z]+}', $byName)
            ->get('/t/{name:[A-Z]+}', $byName)
            ->delete('/t/{other}', static fn(string $other): array => [])
            ->get('/t/{id}/x', static fn(string $id): array => [])
            ->post('/t/{id:\d+}/x', static fn(int $id, #[Body] Page $page): array => [])
            ->post('/t/{id:[a-z]+}/x', static fn(string $id): array => []);
    }

    /** @return array<string, mixed> */
    private static function document(Router $router): array
    {
        return json_decode($router->openApiDocument(), true, flags: JSON_THROW_ON_ERROR);
    }
}

/** What is for dinner. */
enum Board: string
{
    case None = 'none';
    case Half = 'half';
}

/** A stay of a guest. */
#[Validate]
final class Stay
{
    /**
     * @param string $guest who sleeps here
     * @param array<string, list<float>> $rates
     */
    public function __construct(
        #[Assert\Length(max: 20)]
        #[Assert\Regex('~^[a-z/]+$~')]
        public readonly string $guest,
        #[Assert\Range(min: 18, max: 150)]
        public readonly int $age,
        public readonly Board $board = Board::Half,
        public readonly ?\DateTimeImmutable $until = null,
        #[Assert\Valid]
        public readonly ?self $next = null,
        public readonly array $rates = [],
        public readonly mixed $extra = null,
    ) {
    }
}

final class Limited
{
    public function __construct(public readonly float $max = \INF)
    {
    }
}

final class Home
{
    public function __construct(#[Assert\Length(min: 10)] public readonly string $street)
    {
    }
}

final class Resident
{
    /** @param list<Home> $others */
    public function __construct(
        #[Assert\Length(min: 5, groups: ['admin'])]
        public readonly string $nick,
        public readonly Home $home,
        #[Assert\Valid]
        public readonly array $others,
        #[Assert\Choice(choices: ['m', 'f'])]
        public readonly ?string $sex,
    ) {
    }
}

final class Named
{
    public function __construct(
        #[Assert\Length(max: 3, groups: ['admin'])]
        public readonly string $name,
        #[Assert\Choice(choices: ['first' => 'asc', 'last' => 'desc'])]
        public readonly ?string $order = null,
    ) {
    }
}

final class Chosen
{
    /**
     * @param list<string> $tags
     * @param list<Board> $boards
     * @param array<string, float> $rates
     */
    public function __construct(
        #[Assert\Choice(choices: ['a', 'b'], multiple: true, min: 1)]
        public readonly array $tags,
        #[Assert\Choice(choices: [Board::Half], multiple: true)]
        public readonly array $boards,
        #[Assert\Count(max: 2)]
        #[Assert\NotBlank]
        public readonly array $rates,
        #[Assert\Choice(choices: [Board::None])]
        public readonly ?Board $board,
        #[Assert\LessThan(\INF)]
        public readonly float $any,
    ) {
    }
}

final class Page
{
    /** How many at most. */
    #[Assert\Range(min: 1, max: 100)]
    public readonly int $size;

    /**
     * @param string $q what to look for
     * @param list<string> $tags
     */
    public function __construct(
        #[Assert\Length(max: 3)]
        public readonly ?string $q = 'a',
        #[Assert\Count(max: 2)]
        public readonly array $tags = [],
    ) {
        $this->size = 1;
    }
}
