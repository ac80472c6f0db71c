<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use PHPUnit\Framework\TestCase;
use Weft\Http\Internal\Route;
use Weft\Http\Internal\RouteTable;

final class RouteTableTest extends TestCase
{
    public function testMethodsOfOnePathHaveTheNamesTheirOwnRoutesGive(): void
    {
        $table = new RouteTable();
        $table->add(self::route('GET', '/a/{x}'), static fn() => 'get');
        $table->add(self::route('POST', '/a/{y}'), static fn() => 'post');

        $all = $table->findAll('/a/7');

        self::assertSame([['x' => '7'], '/a/{x}'], \array_slice($all['GET'], 1));
        self::assertSame([['y' => '7'], '/a/{y}'], \array_slice($all['POST'], 1));
        self::assertSame(['x' => '7'], $table->find('/a/7')[1]);
    }

    public function testOnePathAndMethodCannotBeTakenTwiceByOtherNames(): void
    {
        $table = new RouteTable();
        $table->add(self::route('GET', '/a/{x}'), static fn() => 1);

        $this->expectExceptionMessage('GET /a/{y} has a handler already');

        $table->add(self::route('GET', '/a/{y}'), static fn() => 2);
    }

    private static function route(string $method, string $path): Route
    {
        return new Route([$method], $path, static fn() => null, []);
    }
}
