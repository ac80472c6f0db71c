<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use PHPUnit\Framework\Attributes\DataProvider;

/** What a client sends becomes part of a log record, and no more than that. */
final class LogInjectionTest extends HttpTestCase
{
    /** More than any record may have. */
    private const RECORD = 100_000;

    /** @dataProvider formats */
    #[DataProvider('formats')]
    public function testABodyFullOfPlaceholdersInAnExceptionIsOneSmallRecord(string $format): void
    {
        $server = $this->serve('$routes->post("/", static fn(Request $request) => throw new LogicException("no such item: {$request->body()}"));', app: self::logger($format));

        self::assertStatus(500, $server->get('/', '-H', 'content-type: text/plain', '-d', str_repeat('{exception}', 10_000)));

        self::assertTrue($server->awaitLog('no such item'));
        self::assertLessThan(self::RECORD, \strlen($server->log()));
        self::assertStatus(500, $server->get('/', '-d', ''));
    }

    /** @dataProvider formats */
    #[DataProvider('formats')]
    public function testAPathFullOfPlaceholdersIsOneSmallRecord(string $format): void
    {
        $server = $this->serve('$routes->fallback(static fn() => throw new LogicException("broken"));', app: self::logger($format));

        self::assertStatus(500, $server->get('/' . str_repeat('%7Bexception%7D{error}{exception}', 400), '-g'));

        self::assertTrue($server->awaitLog('broken'));
        self::assertLessThan(self::RECORD, \strlen($server->log()));
    }

    public function testEscapeSequencesAreNotWritten(): void
    {
        $server = $this->serve('$routes->post("/{name}", static fn(string $name, Request $request) => throw new LogicException("$name {$request->body()}"));', app: self::logger('Text'));

        $server->get('/a%1b%5b2J', '-d', "b\x1b[2J\rc\u{9b}2J\u{202e}");

        self::assertTrue($server->awaitLog('LogicException'));
        self::assertStringContainsString('a\x1B[2J b\x1B[2J\rc\u{009B}2J\u{202E} at ', $server->log());
        self::assertSame(0, preg_match('/[\x1b\r]|\xc2\x9b|\xe2\x80\xae/', $server->log()));
    }

    /** @return list<array{string}> */
    public static function formats(): array
    {
        return [['Text'], ['Json']];
    }

    private static function logger(string $format): string
    {
        return "logger: new Weft\\Log\\StreamLogger(format: Weft\\Log\\Format::$format)";
    }
}
