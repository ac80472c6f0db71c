<?php

declare(strict_types=1);

namespace Weft\Tests\Hooks;

use PHPUnit\Framework\TestCase;
use Weft\Tests\Execution;
use Weft\Tests\Runtime\Subprocess;

/** A persistent connection that a second task opens while the first one waits in it. */
final class PersistentConnectionTest extends TestCase
{
    public function testPgPconnectIsRefusedWhileAnotherTaskWaitsInTheConnection(): void
    {
        $program = self::pgsql(<<<'PHP'
            run(static function () use ($at): void {
                $connection = pg_pconnect($at);
                $first = async(static fn(): array => pg_fetch_row(pg_query($connection, "SELECT 'first', pg_sleep(0.3)")));
                yieldNow();
                try {
                    pg_pconnect($at);
                    echo "not refused\n";
                } catch (Weft\Runtime\HandleInUseError $error) {
                    echo $error->getMessage(), "\n";
                }
                echo $first->await()[0], "\n";
                echo pg_fetch_row(pg_query(pg_pconnect($at), "SELECT 'second'"))[0], "\n";
            });
            PHP);

        self::assertSame('', $program->errors);
        self::assertMatchesRegularExpression('/^The connection \(host=.* password=…\) is in use: task #\d+ closure waits in pg_query\(\) at .*\nfirst\nsecond\n$/', $program->output);
    }

    public function testATaskThatQueuesForHandlesGetsThePersistentConnectionWhenItIsFree(): void
    {
        $program = self::pgsql(<<<'PHP'
            run(static function () use ($at): void {
                $connection = pg_pconnect($at);
                $first = async(static function () use ($connection): void { echo pg_fetch_row(pg_query($connection, "SELECT 'first', pg_sleep(0.1)"))[0], "\n"; });
                yieldNow();
                echo pg_fetch_row(pg_query(pg_pconnect($at), "SELECT 'second'"))[0], "\n";
                $first->await();
            }, queueForHandles: true);
            PHP);

        self::assertSame(['', "first\nsecond\n"], [$program->errors, $program->output]);
    }

    /** Whichever of the two connects later replaces the other's connection, which PHP closes. */
    public function testTwoTasksDoNotOpenTheSamePersistentConnectionAtOnce(): void
    {
        $program = self::pgsql(<<<'PHP'
            $server = stream_socket_server('tcp://127.0.0.1:0');
            $silent = 'host=127.0.0.1 user=a port=' . explode(':', stream_socket_get_name($server, false))[1];
            run(static function () use ($silent): void {
                $first = async(static fn(): mixed => pg_pconnect($silent));
                yieldNow();
                try {
                    pg_pconnect($silent);
                } catch (Weft\Runtime\HandleInUseError $error) {
                    echo $error->call, "\n";
                }
                $first->cancel();
            });
            PHP);

        self::assertSame(['', "pg_pconnect()\n"], [$program->errors, $program->output]);
    }

    private static function pgsql(string $code): Execution
    {
        $url = \getenv('DATABASE_URL');
        if (!\extension_loaded('pgsql') || $url === false) {
            self::markTestSkipped('needs the extension pgsql and DATABASE_URL');
        }
        $at = \parse_url($url);

        return Subprocess::run('$at = ' . \var_export("host=$at[host] port=$at[port] dbname=weft user=$at[user] password=$at[pass]", true) . ";\n" . $code, extensions: ['pgsql']);
    }
}
