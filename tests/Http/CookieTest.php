<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Http\Cookie;
use Weft\Http\SameSite;

final class CookieTest extends TestCase
{
    public function testACookieIsForTlsAndNotForScriptsAndOtherSites(): void
    {
        self::assertSame('a=1; Path=/; Secure; HttpOnly; SameSite=Lax', (string) new Cookie('a', '1'));
    }

    public function testEverythingThatWasAskedForIsSent(): void
    {
        $cookie = new Cookie('a', "1; Domain=evil\r\n\u{202e}", 60, '/shop/a b', 'Example.org', false, false, SameSite::Strict);

        self::assertSame('a=1%3B%20Domain%3Devil%0D%0A%E2%80%AE; Max-Age=60; Path=/shop/a b; Domain=Example.org; SameSite=Strict', (string) $cookie);
    }

    public function testACookieForOtherSitesIsSecure(): void
    {
        self::assertSame('a=; Path=/; Secure; HttpOnly; SameSite=None', (string) new Cookie('a', '', sameSite: SameSite::None));
        self::assertSame('__Host-a=1; Path=/; Secure; HttpOnly; SameSite=Lax', (string) new Cookie('__Host-a', '1'));
    }

    /**
     * @dataProvider wrong
     *
     * @param array<string, mixed> $arguments
     */
    #[DataProvider('wrong')]
    public function testAnInvalidCookieIsRefusedWithTheReason(array $arguments, string $named): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage($named);

        new Cookie(...$arguments + ['name' => 'a', 'value' => '1']);
    }

    /** @return iterable<string, array{array<string, mixed>, string}> */
    public static function wrong(): iterable
    {
        foreach (['', 'a b', 'a;b', 'a=b', "a\r\n", "a\0", 'ä', 'a,b', '"a"'] as $name) {
            yield 'name ' . json_encode($name) => [['name' => $name], 'is not the name of a cookie'];
        }
        foreach (['', 'a', '/; Domain=evil', "/\r\nset-cookie: b=2", "/\n", "/\x7f", '/ä', '/' . str_repeat('a', 1_024)] as $path) {
            yield 'path ' . substr(json_encode($path), 0, 40) => [['path' => $path], 'has the path'];
        }
        foreach (['', '.example.org', 'example.org.', 'a b', 'a;b', 'evil; Path=/x', "a\n", 'ä.org', '-a.org', 'a..b', 'a:80', '[::1]', str_repeat('a.', 130) . 'a', str_repeat('a', 64)] as $domain) {
            yield 'domain ' . substr(json_encode($domain), 0, 40) => [['domain' => $domain], 'has the domain'];
        }
        yield 'age' => [['maxAge' => -1], 'has a maxAge of -1'];
        yield 'large' => [['value' => str_repeat('ä', 700)], 'has 4201 bytes'];
        yield 'none' => [['secure' => false, 'sameSite' => SameSite::None], 'SameSite::None and must be secure'];
        yield 'secure prefix' => [['name' => '__secure-a', 'secure' => false], 'must be secure'];
        yield 'host prefix' => [['name' => '__Host-a', 'path' => '/x'], 'must have the path "/"'];
        yield 'host prefix and domain' => [['name' => '__Host-a', 'domain' => 'a.org'], 'must have the path "/"'];
    }
}
