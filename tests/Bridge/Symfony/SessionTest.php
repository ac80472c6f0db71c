<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Symfony;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Symfony\Component\HttpFoundation\Session\Attribute\AttributeBag;
use Weft\Bridge\Symfony\Session\FileHandler;
use Weft\Bridge\Symfony\Session\Format;
use Weft\Bridge\Symfony\Session\Storage;

use function Weft\run;

require_once __DIR__ . '/autoload.php';

/** Symfony's sessions as Weft keeps them. */
final class SessionTest extends TestCase
{
    private const ID = 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa';

    private string $directory = '';

    protected function setUp(): void
    {
        $this->directory = \sys_get_temp_dir() . '/weft-session-' . \bin2hex(\random_bytes(6));
        \mkdir($this->directory);
    }

    protected function tearDown(): void
    {
        \exec('rm -rf ' . \escapeshellarg($this->directory));
    }

    public function testOnlyTheUserOfTheServerCanReadASession(): void
    {
        $mask = \umask(0o022);
        try {
            $this->read();
            self::assertSame(0o022, \umask());
        } finally {
            \umask($mask);
        }

        self::assertSame(0o600, \fileperms($this->file()) & 0o777);
    }

    public function testASessionThatOthersCouldReadIsTheirsNoMore(): void
    {
        \touch($this->file());
        \chmod($this->file(), 0o644);

        $this->read();

        \clearstatcache();
        self::assertSame(0o600, \fileperms($this->file()) & 0o777);
    }

    public function testASymbolicLinkIsNoSession(): void
    {
        \file_put_contents("$this->directory/other", 'secret');
        \symlink("$this->directory/other", $this->file());

        $this->expectExceptionMessage("The session file {$this->file()} is a symbolic link");

        $this->read();
    }

    public function testTheFileOfAnotherUserIsNoSession(): void
    {
        \touch($this->file());
        if (!@\chown($this->file(), 65534)) {
            self::markTestSkipped('Only root can give a file away');
        }

        $this->expectExceptionMessage("The session file {$this->file()} belongs to another user");

        $this->read();
    }

    public function testASessionThatCannotBeWrittenIsReportedWithItsHandler(): void
    {
        $handler = new class () implements \SessionHandlerInterface {
            public function open(string $path, string $name): bool
            {
                return true;
            }

            public function close(): bool
            {
                return true;
            }

            public function read(string $id): string
            {
                return '';
            }

            public function write(string $id, string $data): bool
            {
                return false;
            }

            public function destroy(string $id): bool
            {
                return true;
            }

            public function gc(int $max_lifetime): int
            {
                return 0;
            }

            // phpcs:ignore PSR1.Methods.CamelCapsMethodName -- PHP calls it by this name.
            public function create_sid(): string
            {
                return \bin2hex(\random_bytes(16));
            }

            public function validateId(string $id): bool
            {
                return true;
            }
        };
        $storage = new Storage($handler);
        $bag = new AttributeBag();
        $bag->setName('attributes');
        $storage->registerBag($bag);
        $storage->start();
        $bag->set('user', 'ada');

        $this->expectException(\RuntimeException::class);
        $this->expectExceptionMessage('SessionHandlerInterface@anonymous::write() failed');

        $storage->save();
    }

    /** @dataProvider formats */
    #[DataProvider('formats')]
    public function testASessionIsStoredAsPhpItselfDoes(string $format): void
    {
        if ($format === 'igbinary' && !\extension_loaded('igbinary')) {
            self::markTestSkipped('needs the extension igbinary');
        }
        $shared = new \ArrayObject(['a|b;}' => "line\n\0", 'price' => 1.5, 'none' => null]);
        $data = ['user' => 'Zoë', 'one' => $shared, 'list' => [true, ['deep' => -7]], 'other' => $shared, 'when' => new \DateTimeImmutable('2026-01-02 03:04:05 UTC')];
        $data['same'] = &$data['list'];
        $php = self::php($format, 'foreach (unserialize($argv[1]) as $key => &$value) { $_SESSION[$key] = &$value; } echo session_encode();', \serialize($data));

        $encoded = Format::from($format)->encode($data);
        $seen = self::php($format, 'session_decode($argv[1]); echo serialize($_SESSION);', $encoded);

        self::assertEquals($data, \unserialize($seen));
        $decoded = Format::from($format)->decode($php);
        self::assertEquals($data, $decoded);
        self::assertSame($decoded['one'] ?? null, $decoded['other'] ?? false);
        self::assertEquals($data, Format::from($format)->decode(\serialize($data)), 'as Weft 0.2 has stored it');
    }

    /** @return iterable<string, array{string}> */
    public static function formats(): iterable
    {
        foreach (Format::cases() as $format) {
            yield $format->value => [$format->value];
        }
    }

    public function testWhatIsNotOfTheFormatIsNoSession(): void
    {
        foreach (['garbage', 'a:1:{s:1:"x";i:1;', 'user|i:1', "user|i:1;\0", 'user|O:1:"x"', '|', "\x04use", 'user|}', 's:3:"abc";'] as $stored) {
            foreach ([Format::Php, Format::PhpBinary, Format::PhpSerialize] as $format) {
                self::assertNull($format->decode($stored), "$format->value: $stored");
            }
        }
    }

    public function testASessionThatIsNotUnderstoodStaysAndTheVisitorHasANewOne(): void
    {
        \file_put_contents($this->file(), 'of another program');
        $storage = new Storage(new FileHandler($this->directory));
        $storage->setId(self::ID);

        run(static function () use ($storage): void {
            $storage->start();
            $storage->save();
        });

        self::assertNotSame(self::ID, $storage->getId());
        self::assertSame('of another program', \file_get_contents($this->file()));
    }

    public function testOtherServersAndWeftShareASession(): void
    {
        \file_put_contents($this->file(), '_sf2_attributes|a:1:{s:4:"user";s:3:"ada";}cart|i:7;');
        $storage = new Storage(new FileHandler($this->directory), ['serialize_handler' => 'php']);
        $bag = new AttributeBag();
        $storage->registerBag($bag);
        $storage->setId(self::ID);

        run(static function () use ($storage, $bag): void {
            $storage->start();
            self::assertSame('ada', $bag->get('user'));
            $bag->set('seen', 1);
            $storage->save();
        });

        self::assertStringStartsWith('_sf2_attributes|a:2:{s:4:"user";s:3:"ada";s:4:"seen";i:1;}cart|i:7;_sf2_meta|a:', (string) \file_get_contents($this->file()));
    }

    public function testAFormatThatWeftDoesNotHaveIsNamed(): void
    {
        $this->expectException(\RuntimeException::class);
        $this->expectExceptionMessage('session.serialize_handler is "wddx"');

        new Storage(new FileHandler($this->directory), ['serialize_handler' => 'wddx']);
    }

    /** What a program prints that has PHP's own session. */
    private static function php(string $format, string $program, string $argument): string
    {
        $settings = ['session.use_cookies=0', 'session.cache_limiter=', "session.serialize_handler=$format", 'session.save_path=' . \sys_get_temp_dir()];
        $command = [\PHP_BINARY, ...\array_merge(...\array_map(static fn(string $setting): array => ['-d', $setting], $settings))];
        $begin = '$argv[1] = base64_decode($argv[1]); session_start(); ob_start();';
        $end = 'echo PHP_EOL . base64_encode(ob_get_clean()); session_destroy();';
        $process = \proc_open([...$command, '-r', "$begin $program $end", '--', \base64_encode($argument)], [1 => ['pipe', 'w']], $pipes);
        self::assertIsResource($process);
        $printed = (string) \stream_get_contents($pipes[1]);
        \proc_close($process);

        return (string) \base64_decode((string) \strrchr($printed, "\n"));
    }

    private function read(): void
    {
        run(function (): void {
            $handler = new FileHandler($this->directory);
            $handler->open('', 'x');
            $handler->read(self::ID);
            $handler->close();
        });
    }

    private function file(): string
    {
        return "$this->directory/session-" . self::ID;
    }
}
