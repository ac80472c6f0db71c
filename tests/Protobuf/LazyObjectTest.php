<?php

declare(strict_types=1);

namespace Weft\Tests\Protobuf;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Protobuf\Codec;
use Weft\Protobuf\Json;
use Weft\Tests\Protobuf\Generated\Everything\Everything;

/** Lazy objects of PHP 8.4 as messages: what makes them runs when they are encoded. */
final class LazyObjectTest extends TestCase
{
    protected function setUp(): void
    {
        if (!\method_exists(\ReflectionClass::class, 'newLazyGhost')) {
            self::markTestSkipped('lazy objects came with PHP 8.4');
        }
    }

    /** @dataProvider kinds */
    #[DataProvider('kinds')]
    public function testALazyMessageIsEncodedLikeAnyOther(string $kind): void
    {
        $plain = new Everything(int32: 7, string: 'seven');

        self::assertSame(\bin2hex(Codec::encode($plain)), \bin2hex(Codec::encode(self::lazy($kind))));
        self::assertSame(Json::encode($plain), Json::encode(self::lazy($kind)));
    }

    /** @dataProvider kinds */
    #[DataProvider('kinds')]
    public function testALazyMessageInsideOfAnother(string $kind): void
    {
        $plain = Codec::encode(new Everything(child: new Everything(int32: 7, string: 'seven')));

        self::assertSame(\bin2hex($plain), \bin2hex(Codec::encode(new Everything(child: self::lazy($kind)))));
    }

    /** @dataProvider kinds */
    #[DataProvider('kinds')]
    public function testALazyMessageThatWasUsedBefore(string $kind): void
    {
        $lazy = self::lazy($kind);
        $lazy->int32++;

        self::assertSame(\bin2hex(Codec::encode(new Everything(int32: 8, string: 'seven'))), \bin2hex(Codec::encode($lazy)));
    }

    /** @dataProvider kinds */
    #[DataProvider('kinds')]
    public function testWhatTheInitializerThrowsIsThrown(string $kind): void
    {
        $lazy = self::lazy($kind, static fn(): never => throw new \DomainException('no value'));
        foreach ([static fn(): string => Codec::encode($lazy), static fn(): string => Codec::encode(new Everything(child: $lazy)), static fn(): string => Json::encode($lazy)] as $encode) {
            try {
                $encode();
                self::fail('nothing was thrown');
            } catch (\DomainException $thrown) {
                self::assertSame('no value', $thrown->getMessage());
            }
        }
    }

    /** @return iterable<string, array{string}> */
    public static function kinds(): iterable
    {
        yield 'a ghost' => ['Ghost'];
        yield 'a proxy' => ['Proxy'];
    }

    /** @param (\Closure(): Everything)|null $make */
    private static function lazy(string $kind, ?\Closure $make = null): Everything
    {
        $class = new \ReflectionClass(Everything::class);
        $make ??= static fn(): Everything => new Everything(int32: 7, string: 'seven');

        $initializer = $kind === 'Proxy' ? $make : static function (Everything $ghost) use ($make): void {
            $made = $make();
            $ghost->__construct(int32: $made->int32, string: $made->string);
        };

        return $class->{"newLazy$kind"}($initializer);
    }
}
