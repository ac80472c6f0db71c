<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Symfony;

use PHPUnit\Framework\TestCase;
use Symfony\Component\HttpFoundation\Session\Attribute\AttributeBag;
use Weft\Bridge\Symfony\Session\FileHandler;
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
