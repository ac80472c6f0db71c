<?php

declare(strict_types=1);

namespace Weft\Tests\Memory;

use PHPUnit\Framework\TestCase;
use Weft\Protobuf\Codec;
use Weft\Protobuf\EncodingException;
use Weft\Tests\Execution;
use Weft\Tests\Protobuf\Generated\Everything\Everything;
use Weft\Tests\Runtime\Subprocess;

/** PHP code that runs while the extension encodes a message changes the message. */
final class ProtobufTest extends TestCase
{
    public function testATimeThatReleasesItsMessageIsEncoded(): void
    {
        $message = new Everything(children: [new Everything, new Everything(int32: 7)]);
        $message->children[0]->at = new Moment(static function () use (&$message): void {
            $message->children = [];
            $message->at = null;
            gc_collect_cycles();
        });

        $expected = Codec::encode(new Everything(children: [
            new Everything(at: new \DateTimeImmutable('@7')),
            new Everything(int32: 7),
        ]));

        self::assertSame($expected, Codec::encode($message));
        self::assertSame([], $message->children);
    }

    public function testATimeThatReleasesItselfIsEncoded(): void
    {
        $message = new Everything;
        $message->at = new Moment(static function () use ($message): void {
            $message->at = null;
            gc_collect_cycles();
        });

        self::assertSame(Codec::encode(new Everything(at: new \DateTimeImmutable('@7'))), Codec::encode($message));
    }

    public function testAnElementBehindAReferenceMayBeReleased(): void
    {
        $last = new Everything(int32: 7);
        $first = new Everything;
        $message = new Everything(children: [&$first, &$last]);
        $first->at = new Moment(static function () use (&$first, &$last): void {
            $first = null;
            $last = new Everything(int32: 8);
        });

        $expected = new Everything(children: [new Everything(at: new \DateTimeImmutable('@7')), new Everything(int32: 8)]);

        self::assertSame(Codec::encode($expected), Codec::encode($message));
    }

    public function testAnExceptionOfAnObjectInAMessageIsThrown(): void
    {
        $message = new Everything(children: [new Everything(at: new Moment(static fn() => throw new \DomainException('on purpose')))]);

        $this->expectExceptionMessage('on purpose');
        Codec::encode($message);
    }

    public function testAMessageMayBeEncodedWhileItIsEncoded(): void
    {
        $message = new Everything(int32: 7);
        $inner = null;
        $message->at = new Moment(static function () use ($message, &$inner): void {
            $copy = clone $message;
            $copy->at = null;
            $inner = Codec::encode($copy);
        });

        self::assertSame(Codec::encode(new Everything(int32: 7, at: new \DateTimeImmutable('@7'))), Codec::encode($message));
        self::assertSame(Codec::encode(new Everything(int32: 7)), $inner);
    }

    public function testAStructureThatContainsItselfIsRefused(): void
    {
        $list = [1];
        $list[] = &$list;

        $this->expectException(EncodingException::class);
        Codec::encode(new Everything(value: $list));
    }

    public function testAClassThatIsLoadedMayTakeItsObjectOutOfTheMessage(): void
    {
        $program = $this->withAClassOfItsOwn(<<<'PHP'
            Hook::$run = static function () use ($message): void {
                $message->class = null;
                gc_collect_cycles();
            };
            echo bin2hex(Weft\Protobuf\Codec::encode($message));
            PHP);

        self::assertSame(0, $program->exitCode, $program->errors);
        self::assertMatchesRegularExpression('/^([0-9a-f]{2})+$/D', $program->output);
    }

    public function testAClassThatIsLoadedMayEncodeTheSameMessage(): void
    {
        $program = $this->withAClassOfItsOwn(<<<'PHP'
            Hook::$run = static function () use ($message): void {
                static $once = 0;
                if ($once++ === 0) {
                    echo bin2hex(Weft\Protobuf\Codec::encode($message)), ' ';
                    gc_collect_cycles();
                }
            };
            echo bin2hex(Weft\Protobuf\Codec::encode($message));
            PHP);

        self::assertSame(0, $program->exitCode, $program->errors);
        self::assertCount(1, array_unique(explode(' ', $program->output)));
    }

    public function testAnotherClassOfTheSameMessageDoesNotGetIntoATypedProperty(): void
    {
        $program = $this->withAClassOfItsOwn(<<<'PHP'
            $bytes = Weft\Protobuf\Codec::encode($message);
            $other = Weft\Protobuf\Codec::decode(Other::class, '');
            $decoded = Weft\Protobuf\Codec::decode(Weft\Tests\Protobuf\Generated\Everything\Everything::class, $bytes);
            echo get_class($other), ' ', get_class($decoded->class);
            PHP);

        self::assertSame('Other Weft\Tests\Protobuf\Generated\Everything\Everything\PBClass', $program->output, $program->errors);
    }

    /** The message's class is declared by hand, so that it runs PHP code when the extension meets it. */
    private function withAClassOfItsOwn(string $code): Execution
    {
        $directory = var_export(dirname(__DIR__, 2), true);

        return Subprocess::run(<<<PHP
            final class Hook { public static ?Closure \$run = null; }
            \$source = static fn(string \$name): string => <<<TEXT
                final class \$name implements \Weft\Protobuf\Message
                {
                    private string \\\$unknownFields = '';
                    public function __construct(public string \\\$unknownFields_ = '') { }
                    public static function typeName(): string { return 'everything.Everything.Class'; }
                    public static function file(): string
                    {
                        if (\Hook::\\\$run !== null) {
                            (\Hook::\\\$run)();
                        }
                        return \Weft\Tests\Protobuf\Generated\Everything\EverythingFile::class;
                    }
                }
                TEXT;
            eval('namespace Weft\Tests\Protobuf\Generated\Everything\Everything; ' . \$source('PBClass'));
            eval(\$source('Other'));
            \$message = new Weft\Tests\Protobuf\Generated\Everything\Everything(
                class: new Weft\Tests\Protobuf\Generated\Everything\Everything\PBClass('text'),
            );
            $code
            PHP);
    }
}
