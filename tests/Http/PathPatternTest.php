<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Http\Internal\Routing\PathPattern;
use Weft\Http\Internal\Routing\RouteTable;

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

    public function testAPathIsBuiltOfValuesThatItWouldMatch(): void
    {
        self::assertSame('/people/Zo%C3%AB%20%2F', PathPattern::of('/people/{name}')->build(['name' => 'Zoë /']));
        self::assertSame('/files/a/b%20c', PathPattern::of('/files/{path:.+}')->build(['path' => 'a/b c']));
        self::assertSame('/p/7?tab=books&l%5B0%5D=1', PathPattern::of('/p/{id:\d+}')->build(['id' => 7, 'tab' => 'books', 'l' => [1]]));
        foreach ([['id' => 'x'], ['id' => ''], [], ['id' => null], ['id' => []]] as $values) {
            try {
                PathPattern::of('/p/{id:\d+}')->build($values);
                self::fail('it was built of ' . json_encode($values));
            } catch (\ValueError $error) {
                self::assertStringContainsString('{id}', $error->getMessage());
            }
        }
    }
}
