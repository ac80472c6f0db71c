<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Laravel;

use Illuminate\Cache\DatabaseStore;
use Illuminate\Cache\FileStore;
use Illuminate\Container\Container;
use Illuminate\Contracts\Cache\LockProvider;
use Illuminate\Database\Capsule\Manager;
use Illuminate\Database\Schema\Blueprint;
use Illuminate\Filesystem\Filesystem;
use Illuminate\Session\FileSessionHandler;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Bridge\Laravel\Database\Connector;

use function Weft\async;
use function Weft\delay;
use function Weft\run;

require_once __DIR__ . '/autoload.php';

/** Laravel's locks let the tasks run that hold them. */
final class LocksTest extends TestCase
{
    use RequiresLaravel;

    private string $directory;

    protected function setUp(): void
    {
        $this->directory = \sys_get_temp_dir() . '/weft-laravel-' . \bin2hex(\random_bytes(6));
        \mkdir($this->directory);
    }

    protected function tearDown(): void
    {
        \exec('rm -rf ' . \escapeshellarg($this->directory));
    }

    /** @return iterable<string, array{string}> */
    public static function stores(): iterable
    {
        yield 'files' => ['file'];
        yield 'a database' => ['database'];
    }

    /** @dataProvider stores */
    #[DataProvider('stores')]
    public function testAWaitForACacheLockLetsItsHolderRun(string $kind): void
    {
        $store = $kind === 'file' ? new FileStore(new Filesystem(), $this->directory) : $this->databaseStore();

        $order = run(static function () use ($store): array {
            $order = new \ArrayObject();
            $lock = $store->lock('report', 120);
            self::assertTrue($lock->get());
            // Blocked in PHP, the process would never come to the release below.
            $waiter = async(static function () use ($store, $order): void {
                $store->lock('report', 120)->block(60, static fn() => $order->append('second'));
            });
            delay(0.02);
            $order->append('first');
            $lock->release();
            $waiter->await();

            return $order->getArrayCopy();
        });

        self::assertSame(['first', 'second'], $order);
    }

    public function testASessionFileThatIsLockedLetsItsHolderRun(): void
    {
        $handler = new FileSessionHandler(new Filesystem(), $this->directory, 60);
        $handler->write('id', 'before');
        $holder = \fopen("$this->directory/id", 'r+');
        self::assertIsResource($holder);
        \flock($holder, \LOCK_EX);

        $read = run(static function () use ($handler, $holder): string {
            $reader = async(static fn(): string => $handler->read('id'));
            delay(0.02);
            \ftruncate($holder, 0);
            \fwrite($holder, 'after');
            \fflush($holder);
            \flock($holder, \LOCK_UN);

            return $reader->await();
        });

        self::assertSame('after', $read);
    }

    private function databaseStore(): LockProvider
    {
        \touch("$this->directory/cache.db");
        $container = new Container();
        $container->bind('db.connector.sqlite', static fn(): Connector => new Connector());
        $manager = new Manager($container);
        $manager->addConnection(['driver' => 'sqlite', 'database' => "$this->directory/cache.db", 'prefix' => '']);
        $manager->getConnection()->getSchemaBuilder()->create('cache_locks', static function (Blueprint $table): void {
            $table->string('key')->primary();
            $table->string('owner');
            $table->integer('expiration');
        });

        return new DatabaseStore($manager->getConnection(), 'cache');
    }
}
