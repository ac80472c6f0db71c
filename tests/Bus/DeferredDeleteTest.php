<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use Psr\Log\NullLogger;
use Weft\Bus\Internal\Persistence\DeferredDelete;
use Weft\Sql\Database;
use Weft\Tests\Bus\Fixtures\TemporaryDatabase;

use function Weft\async;
use function Weft\delay;

final class DeferredDeleteTest extends BusTestCase
{
    use TemporaryDatabase;

    public function testAFlushWaitsForOneThatRunsAlready(): void
    {
        $this->inRuntime(function (): void {
            $database = Database::connect($this->dsn());
            $database->execute('CREATE TABLE rows_to_delete (id TEXT PRIMARY KEY)');
            $database->execute("INSERT INTO rows_to_delete VALUES ('1'), ('2'), ('3')");
            $deferred = new DeferredDelete($database, 'rows_to_delete', 'id', new NullLogger());
            $writer = $database->begin();
            $writer->execute("DELETE FROM rows_to_delete WHERE id = '3'");
            $writer->flush();
            $deferred->add('1');
            $first = async($deferred->flush(...));
            delay(0.05);
            $deferred->add('2');
            $second = async($deferred->flush(...));
            delay(0.05);

            self::assertSame([false, false], [$first->isDone(), $second->isDone()]);
            $writer->commit();
            $second->await();
            self::assertSame([], $database->execute('SELECT id FROM rows_to_delete')->column());
            $first->await();
            $database->close();
        });
    }
}
