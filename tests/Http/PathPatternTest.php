<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Http\Internal\Routing\PathPattern;
use Weft\Http\Internal\Routing\RouteTable;
use Weft\Http\InvalidRouteError;
use Weft\Http\Router;

final class PathPatternTest extends TestCase
{
    public function testMethodsOfOnePathHaveTheNamesTheirOwnRoutesGive(): void
    {
        $table = new RouteTable();
        $table->add(PathPattern::of('/a/{x}'), ['GET' => static fn() => 'get']);
        $table->add(PathPattern::of('/a/{y}'), ['POST' => static fn() => 'post']);

        $all = $table->findAll('/a/7');

        self::assertSame([['x' => '7'], '/a/{x}'], \array_slice($all['GET'], 1));
        self::assertSame([['y' => '7'], '/a/{y}'], \array_slice($all['POST'], 1));
        self::assertSame(['x' => '7'], $table->find('/a/7')[1]);
    }

    /** @dataProvider pairs */
    #[DataProvider('pairs')]
    public function testAPathCoversAnotherIfItMatchesEveryPathOfIt(bool $covers, string $first, string $second): void
    {
        self::assertSame($covers, PathPattern::of($first)->covers(PathPattern::of($second)), "$first and $second");
    }

    /** @return iterable<array{bool, string, string}> */
    public static function pairs(): iterable
    {
        yield [true, '/people/{id}', '/people/{name}'];
        yield [true, '/people/{id}', '/people/{id:\d+}'];
        yield [true, '/people/{id}', '/people/{id:[a-z]{2,4}}'];
        yield [true, '/people/{id}', '/people/{id:(one|two)}'];
        yield [true, '/{path:.*}', '/a/{b}'];
        yield [true, '/{path:.*}', '/{b}'];
        yield [true, '/{path:.+}', '/a/{b}/c'];
        yield [true, '/a/{path:.+}', '/a/{b}-{c}/d'];
        yield [true, '/{kind:a|b}/{id}', '/a/{id:\d+}'];
        yield [false, '/people/{id:\d+}', '/people/{id}'];
        yield [false, '/people/{id:\d+}', '/people/{id:[0-9]+}'];
        yield [false, '/people/{id}', '/people/{path:.+}'];
        yield [false, '/people/{id}', '/people/{path:[^x]+}'];
        yield [false, '/people/{id}', '/people/{path:\D+}'];
        yield [false, '/people/{id}', '/people/{path:a/b}'];
        yield [false, '/people/{id}', '/people/{path:\d*}'];
        yield [false, '/people/{id}', '/people/{id}/books'];
        yield [false, '/people/{id}', '/books/{id}'];
        yield [false, '/{path:.+}', '/{b:.*}'];
        yield [false, '/a/{b}-{c}', '/a/{b}'];
        yield [false, '/{kind:a|b}/{id}', '/c/{id}'];
    }

    /** @dataProvider foreign */
    #[DataProvider('foreign')]
    public function testASyntaxThatIsNoParameterIsRefused(string $path, string $message): void
    {
        $this->expectException(InvalidRouteError::class);
        $this->expectExceptionMessage("The path \"$path\" contains $message");

        PathPattern::of($path);
    }

    /** @return iterable<array{string, string}> */
    public static function foreign(): iterable
    {
        yield ['/books/{id?}', '"{id?}": no parameter is optional: add a route for each of the two paths'];
        yield ['/books/{id<\d+>}', '"{id<\d+>}": write {id:\d+}'];
        yield ['/books/{id<\d+>?}', '"{id<\d+>?}": write {id:\d+}'];
        yield ['/{a}/:id', '":id": write {id}'];
        yield ['/:id/c', '":id": write {id}'];
        yield ['/c/{id', '"{": write {name} or {name:expression}'];
        yield ['/d/{}', '"{": write {name} or {name:expression}'];
        yield ['/d/{a-b}', '"{": write {name} or {name:expression}'];
        yield ['/e/{id:', '"{": write {name} or {name:expression}'];
        yield ['/e/id}', '"}": write {name} or {name:expression}'];
        yield ['/f/<id>', '"<id>": write {id}'];
        yield ['/f/<int:id>/g', '"<int:id>": write {id}'];
        yield ['/g/*', '"*": write {path:.*} for the rest of the path'];
        yield ['/g/**', '"**": write {path:.*} for the rest of the path'];
        yield ['/h[/{id}]', '"[/.]": no part is optional: add a route for each path'];
        yield ['/i?page=1', '"?": a path has no query'];
        yield ['/a b', '" ": percent-encode'];
        yield ['/a%', '"%": write %25 for a percent sign'];
        yield ['/100%/{id}', '"%": write %25 for a percent sign'];
        yield ['/a%2{id}', '"%": write %25 for a percent sign'];
        yield ['/a%zz', '"%": write %25 for a percent sign'];
        yield ['/users/\d+', '"\\": write an expression in braces, {name:expression}'];
        yield ['/a"b', '""": percent-encode'];
        yield ['/a<b', '"<": percent-encode'];
        yield ["/a\x7f", "\"\x7f\": percent-encode"];
    }

    /** @dataProvider texts */
    #[DataProvider('texts')]
    public function testWhatAPathMayContainIsText(string $path, string $request): void
    {
        self::assertTrue(PathPattern::of($path)->matches($request));
    }

    /** @return iterable<array{string, string}> */
    public static function texts(): iterable
    {
        yield ['/v1/books/{id}:publish', '/v1/books/7:publish'];
        yield ['/v1/books:batchGet', '/v1/books:batchGet'];
        yield ['/a*b/**c/{id}*', '/a*b/**c/7*'];
        yield ['/a:{b}/(c)/d=e;f,g/@h/$i/j%20k', '/a:7/(c)/d=e;f,g/@h/$i/j%20k'];
        yield ['/{id:[a-z]{2,4}}/{star:\*}/{colon::x}', '/abc/*/:x'];
        foreach (['/a|b' => ['/a|b', '/a%7Cb', '/a%7cb'], '/a^b`c' => ['/a^b`c', '/a%5Eb%60c', '/a%5eb`c'], '/café' => ['/caf%C3%A9', '/caf%c3%A9', '/café']] as $path => $requests) {
            foreach ($requests as $request) {
                yield [$path, $request];
                yield ["$path/{id}", "$request/7"];
            }
        }
        yield ['/a%7cb', '/a|b'];
        yield ['/caf%C3%A9', '/caf%c3%a9'];
        yield ['/100%25', '/100%25'];
    }

    public function testAnEncodedSlashSeparatesNothingAndALetterIsNotDecoded(): void
    {
        self::assertFalse(PathPattern::of('/a/b')->matches('/a%2Fb'));
        self::assertFalse(PathPattern::of('/admin')->matches('/%61dmin'));
        self::assertTrue(PathPattern::of('/a%2fb')->matches('/a%2Fb'));
    }

    public function testARouteIsFoundInEverySpellingAndBeforeOneWithParameters(): void
    {
        $table = new RouteTable();
        $table->add(PathPattern::of('/{any}'), ['GET' => $any = static fn() => null]);
        $table->add(PathPattern::of('/a|b'), ['GET' => $fixed = static fn() => null]);
        $table->add(PathPattern::of('/café/{kind:x\|y}/{last}'), ['GET' => $named = static fn() => null]);

        self::assertSame($fixed, $table->endpoints['GET /a%7Cb']);
        self::assertSame($fixed, $table->find('/a|b')[0]['GET']);
        self::assertSame([$fixed, [], null], $table->findAll('/a%7cb')['GET']);
        self::assertSame([['GET' => $any], ['any' => 'a|c'], '/{any}'], $table->find('/a|c'));
        self::assertSame([['GET' => $named], ['kind' => 'x|y', 'last' => 'é|'], '/café/{kind:x\|y}/{last}'], $table->find('/caf%C3%A9/x|y/é|'));
    }

    public function testARouteWithTheSamePathInAnotherSpellingIsRefused(): void
    {
        $this->expectException(InvalidRouteError::class);
        $this->expectExceptionMessage('GET /caf%c3%a9 has a handler already');

        (new Router())->get('/café', static fn() => null)->get('/caf%c3%a9', static fn() => null);
    }

    public function testTheUrlOfARouteIsPercentEncoded(): void
    {
        self::assertSame('/caf%C3%A9/a%7Cb/c%7Cd?x=1', PathPattern::of('/café/a|b/{id}')->build(['id' => 'c|d', 'x' => 1]));
    }

    public function testAPathThatIsNotUtf8IsRefused(): void
    {
        $this->expectException(InvalidRouteError::class);
        $this->expectExceptionMessage('The path "/caf?" is not UTF-8');

        PathPattern::of("/caf\xe9");
    }

    public function testAnExpressionWithLettersThatPathsEncodeIsRefused(): void
    {
        $this->expectException(InvalidRouteError::class);
        $this->expectExceptionMessage('The expression of {city} in the path "/{city:caf(é|e)}" contains "é": expressions match the percent-encoded path, write (?:%C3%A9)');

        PathPattern::of('/{city:caf(é|e)}');
    }

    /** @dataProvider expressions */
    #[DataProvider('expressions')]
    public function testGroupsOfAnExpressionAreNoParametersAndClassesAreNotGroups(string $expression, string $matches, string $matchesNot): void
    {
        $table = new RouteTable();
        $table->add(PathPattern::of("/{x:$expression}/{last}"), ['GET' => static fn() => null]);

        self::assertSame(['x' => $matches, 'last' => 'z'], $table->find("/$matches/z")[1]);
        self::assertSame([], $table->find("/$matchesNot/z")[0]);
    }

    /** @return iterable<array{string, string, string}> */
    public static function expressions(): iterable
    {
        yield ['(a|b)c', 'bc', 'b'];
        yield ['[(]\d+', '(5', ':5'];
        yield ['[^](]+(x)', 'ax', '(x'];
        yield ['[]()]+', ')(]', '?'];
        yield ['[[:digit:](]+', '1(', ':'];
        yield ['\[(a)]', '[a]', 'a'];
        yield ['\(a\)', '(a)', 'a'];
        yield ['[\](]', '(', ':'];
        yield ['(?:a)(?=b)b', 'ab', 'a'];
        yield ['(?<y>\d)(?P<z>\d)', '12', '1'];
        yield ['~\~[~]', '~~~', '~'];
    }

    public function testValuesOfEveryKindAreTextInPathAndQuery(): void
    {
        $pattern = PathPattern::of('/p/{id}');
        $text = new class implements \Stringable {
            public function __toString(): string
            {
                return 'a b';
            }
        };
        $values = ['board' => Meal::Half, 'text' => $text, 'yes' => true, 'no' => false, 'rate' => 1.5, 'nothing' => null];

        self::assertSame('/p/7?board=half&text=a%20b&yes=1&no=0&rate=1.5', $pattern->build(['id' => 7] + $values));
        self::assertSame('/p/7?l=half&l=a%20b', $pattern->build(['id' => 7, 'l' => [Meal::Half, $text]]));
        self::assertSame('/p/7?m%5Ba%5D=1&m%5Bb%5D%5B0%5D=2', $pattern->build(['id' => 7, 'm' => ['a' => 1, 'b' => [2]], 'none' => [], 'null' => null]));
        self::assertSame(['/p/half', '/p/a%20b', '/p/1', '/p/0', '/p/1.5'], \array_map(static fn(mixed $value): string => $pattern->build(['id' => $value]), \array_values(\array_filter($values, static fn(mixed $value): bool => $value !== null))));
        $this->expectExceptionMessage('The path "/p/{id}" cannot have the query parameter "when", got DateTimeImmutable');
        $pattern->build(['id' => 7, 'when' => new \DateTimeImmutable()]);
    }

    public function testAPathIsBuiltOfValuesThatItWouldMatch(): void
    {
        self::assertSame('/people/Zo%C3%AB%20%2F', PathPattern::of('/people/{name}')->build(['name' => 'Zoë /']));
        self::assertSame('/files/a/b%20c', PathPattern::of('/files/{path:.+}')->build(['path' => 'a/b c']));
        self::assertSame('/p/7?tab=books&l=1', PathPattern::of('/p/{id:\d+}')->build(['id' => 7, 'tab' => 'books', 'l' => [1]]));
        foreach ([['id' => 'x'], ['id' => ''], [], ['id' => null], ['id' => []]] as $values) {
            try {
                PathPattern::of('/p/{id:\d+}')->build($values);
                self::fail('it was built of ' . json_encode($values));
            } catch (\ValueError $error) {
                self::assertStringContainsString('{id}', $error->getMessage());
            }
        }
    }

    /** @dataProvider dotSegments */
    #[DataProvider('dotSegments')]
    public function testAValueThatClientsWouldRemoveFromThePathIsRefused(string $path, string $value): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage('clients remove the segments "." and ".." before they send it');

        PathPattern::of($path)->build(['id' => $value]);
    }

    /** @return iterable<array{string, string}> */
    public static function dotSegments(): iterable
    {
        yield ['/p/{id}', '.'];
        yield ['/p/{id}/edit', '..'];
        yield ['/p/{id:.+}', 'a/../b'];
        yield ['/p/.{id}', '.'];
    }

    public function testDotsWithinASegmentAreKept(): void
    {
        self::assertSame('/p/...', PathPattern::of('/p/{id}')->build(['id' => '...']));
        self::assertSame('/p/..a/.b', PathPattern::of('/p/{id:.+}')->build(['id' => '..a/.b']));
    }
}

enum Meal: string
{
    case Half = 'half';
}
