<?php

declare(strict_types=1);

namespace Weft\Tests\Hooks;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Native;
use Weft\Runtime\CancelledException;
use Weft\Runtime\HandleInUseError;
use Weft\Runtime\Internal\HandleName;
use Weft\Runtime\Task;
use Weft\Runtime\TimeoutException;
use Weft\Tests\Hooks\Support\Redis as RedisServer;
use Weft\Tests\Hooks\Support\SuspendingStream;
use Weft\Tests\InTask;
use Weft\Tests\PdoMysql;
use Weft\Tests\Runtime\Subprocess;
use Weft\Tests\Timing;

use function Weft\all;
use function Weft\async;
use function Weft\delay;
use function Weft\tasks;
use function Weft\timeout;
use function Weft\yieldNow;

/**
 * One handle of a library, two tasks. The calls suspend in callbacks: a function of SQLite, a write function of curl, a stream of PHP code.
 */
final class HandleInUseTest extends TestCase
{
    use InTask;

    private static bool $isOpen = false;

    protected function setUp(): void
    {
        self::$isOpen = false;
    }

    protected function tearDown(): void
    {
        Native\queueForHandles(false);
    }

    public function testTheSecondTaskGetsAnErrorAndTheFirstItsResult(): void
    {
        $pdo = self::database();
        $first = async(static fn(): mixed => $pdo->query('SELECT gate() + 1')->fetchColumn());
        self::waits($first);

        $error = self::refusal(static fn(): mixed => $pdo->query('SELECT 2'));

        self::assertNotNull($error);
        self::assertSame(1, (int) self::end($first));
        self::assertSame(3, (int) $pdo->query('SELECT 3')->fetchColumn());
    }

    /**
     * @dataProvider statements
     *
     * @param \Closure(mixed): \Closure(): mixed $prepare binds the variable and returns the execution of the statement
     */
    #[DataProvider('statements')]
    public function testAStreamThatIsBoundToAStatementIsReadToItsEnd(string $extension, \Closure $prepare): void
    {
        self::needs($extension);
        $stream = SuspendingStream::open(self::gate(...));
        $execute = $prepare($stream);
        $first = async($execute);
        self::waits($first);

        self::assertNotNull(self::refusal(static fn(): bool => fclose($stream)));
        $streams = count(get_resources('stream'));
        $stream = null;
        self::assertCount($streams, get_resources('stream'));

        self::assertSame("line\nline\nline\n", self::end($first));
        self::assertCount($streams - 1, get_resources('stream'));
    }

    /** @return iterable<string, array{string, \Closure}> */
    public static function statements(): iterable
    {
        yield 'PDOStatement' => ['pdo_sqlite', static function (mixed &$value): \Closure {
            $statement = (new \PDO('sqlite::memory:'))->prepare('SELECT ?');
            $statement->bindParam(1, $value, \PDO::PARAM_LOB);

            return static fn(): mixed => $statement->execute() ? $statement->fetchColumn() : null;
        }];
        yield 'SQLite3Stmt' => ['sqlite3', static function (mixed &$value): \Closure {
            $statement = (new \SQLite3(':memory:'))->prepare('SELECT ?');
            $statement->bindParam(1, $value, \SQLITE3_BLOB);

            return static fn(): mixed => $statement->execute()->fetchArray()[0];
        }];
    }

    public function testAVariableThatIsBoundToAStatementMayBeAssignedWhileTheStatementWaits(): void
    {
        $pdo = self::database();
        $statement = $pdo->prepare('SELECT gate() || ?');
        $text = str_repeat('a', 100);
        $statement->bindParam(1, $text);
        $first = async(static fn(): mixed => $statement->execute() ? $statement->fetchColumn() : null);
        self::waits($first);

        $text = str_repeat('b', 100);
        $others = array_map(static fn(int $number): string => str_repeat('c', 100), range(1, 10));

        self::assertSame('0' . str_repeat('a', 100), self::end($first));
        self::assertCount(10, $others);
    }

    public function testTheErrorNamesTheHandleTheOtherTaskAndItsLine(): void
    {
        $pdo = self::database();
        $first = async(static function () use ($pdo): mixed {
            return $pdo->query('SELECT gate()');
        })->named('report');
        $line = __LINE__ - 2;
        self::waits($first);

        $error = self::refusal(static fn(): mixed => $pdo->exec('SELECT 2'));

        $handle = 'PDO #' . spl_object_id($pdo) . ' (sqlite::memory:)';
        self::assertSame($handle, $error->handle);
        self::assertSame('PDO::query()', $error->call);
        self::assertSame($first->id(), $error->holder?->id);
        self::assertSame(
            "$handle is in use: task #{$first->id()} report waits in PDO::query() at " . __FILE__ . ":$line. A handle serves one task at a time: give each task its own, for example from a pool.",
            $error->getMessage(),
        );
        self::assertSame(__FILE__, $error->getFile());
        self::end($first);
    }

    public function testAStatementBelongsToItsConnection(): void
    {
        $pdo = self::database();
        $statement = $pdo->prepare('SELECT 1');
        $other = $pdo->prepare('SELECT gate()');
        $first = async(static fn(): bool => $other->execute());
        self::waits($first);

        $error = self::refusal(static fn(): bool => $statement->execute());

        self::assertStringStartsWith('PDO #' . spl_object_id($pdo), $error->handle);
        self::assertSame('PDOStatement::execute()', $error->call);
        self::assertTrue(self::end($first));
        self::assertTrue($statement->execute());
    }

    public function testCallsThatOnlyReadMemoryAreLetThrough(): void
    {
        $pdo = self::database();
        $first = async(static fn(): mixed => $pdo->query('SELECT gate()'));
        self::waits($first);

        self::assertFalse($pdo->inTransaction());
        self::assertSame("'it''s'", $pdo->quote("it's"));
        self::end($first);
    }

    public function testOtherHandlesAreNotAffected(): void
    {
        $pdo = self::database();
        $other = self::database();
        $first = async(static fn(): mixed => $pdo->query('SELECT gate()'));
        self::waits($first);

        self::assertSame(2, (int) $other->query('SELECT 2')->fetchColumn());
        self::end($first);
    }

    public function testATaskMayUseAHandleInACallbackOfTheSameHandle(): void
    {
        $pdo = self::database();
        @$pdo->sqliteCreateFunction('nested', static function () use ($pdo): int {
            delay(0.001);

            return 1 + (int) $pdo->query('SELECT 41')->fetchColumn();
        });

        self::assertSame(42, (int) $pdo->query('SELECT nested()')->fetchColumn());
    }

    public function testAHandleIsFreeAgainAfterTheCallThatWaitedWasCancelled(): void
    {
        $pdo = self::database();
        try {
            timeout(0.01, static fn(): mixed => $pdo->query('SELECT pause(60)'));
            self::fail('no timeout');
        } catch (TimeoutException) {
        }

        self::assertSame(5, (int) async(static fn(): mixed => $pdo->query('SELECT 5')->fetchColumn())->await());
    }

    public function testAPersistentConnectionIsOneHandle(): void
    {
        $open = static fn(): \PDO => new \PDO('sqlite::memory:', options: [\PDO::ATTR_PERSISTENT => true]);
        $pdo = $open();
        @$pdo->sqliteCreateFunction('gate', self::gate(...));
        $same = $open();
        $first = async(static fn(): mixed => $pdo->query('SELECT gate() + 1')->fetchColumn());
        self::waits($first);

        self::assertNotNull(self::refusal(static fn(): mixed => $same->query('SELECT 2')));
        $error = self::refusal($open);
        self::assertStringEndsWith('(sqlite::memory:)', (string) $error?->handle);
        self::assertSame(1, (int) self::end($first));
    }

    public function testPdoConnectReturnsTheSamePersistentConnection(): void
    {
        if (!method_exists(\PDO::class, 'connect')) {
            self::markTestSkipped('PDO::connect() came with PHP 8.4');
        }
        $open = static fn(): \PDO => \PDO::connect('sqlite::memory:', options: [\PDO::ATTR_PERSISTENT => 'connect']);
        $pdo = $open();
        $pdo->createFunction('gate', self::gate(...));
        $first = async(static fn(): mixed => $pdo->query('SELECT gate() + 1')->fetchColumn());
        self::waits($first);

        $error = self::refusal($open);
        self::assertSame('The connection (sqlite::memory:)', $error?->handle);
        self::assertNotNull(self::refusal(static fn(): \PDO => new \PDO('sqlite::memory:', options: [\PDO::ATTR_PERSISTENT => 'connect'])));
        self::assertNull(self::refusal(static fn(): \PDO => \PDO::connect('sqlite::memory:', options: [\PDO::ATTR_PERSISTENT => 'another'])));
        self::assertSame(1, (int) self::end($first));
        self::assertNull(self::refusal($open));
    }

    public function testSubclassesAndClosuresOfMethodsAreGuarded(): void
    {
        $pdo = new class ('sqlite::memory:') extends \PDO {
        };
        @$pdo->sqliteCreateFunction('pause', self::pause(...));
        @$pdo->sqliteCreateFunction('gate', self::gate(...));
        $query = $pdo->query(...);
        $first = async(static fn(): mixed => $query('SELECT gate()'));
        self::waits($first);

        self::assertSame('PDO::query()', self::refusal(static fn(): mixed => $query('SELECT 2'))->call);
        self::end($first);
    }

    public function testOneTaskMayReadAStreamWhileAnotherWritesIt(): void
    {
        $stream = SuspendingStream::open(self::gate(...));
        $reader = async(static fn(): mixed => fgets($stream));
        self::waits($reader);

        $writer = async(static fn(): mixed => fwrite($stream, 'ab'));
        self::waits($writer);
        self::assertSame("line\n", self::end($reader));
        self::assertSame(2, $writer->await());
    }

    public function testTwoReadersOfAStreamAreNotAllowed(): void
    {
        $stream = SuspendingStream::open(self::gate(...));
        $reader = async(static fn(): mixed => fgets($stream));
        self::waits($reader);

        $error = self::refusal(static fn(): mixed => fread($stream, 1));

        self::assertSame('fgets()', $error->call);
        self::assertSame('stream #' . get_resource_id($stream), $error->handle);
        self::assertSame("line\n", self::end($reader));
        self::assertSame("line\n", fgets($stream));
    }

    public function testAStreamInWhichATaskWaitsIsNotClosed(): void
    {
        $stream = SuspendingStream::open(self::gate(...));
        $reader = async(static fn(): mixed => fgets($stream));
        self::waits($reader);

        self::assertNotNull(self::refusal(static fn(): bool => fclose($stream)));
        self::assertSame("line\n", self::end($reader));
        self::assertTrue(fclose($stream));
    }

    /** @dataProvider usesOfStreams */
    #[DataProvider('usesOfStreams')]
    public function testAStreamInWhichATaskWaitsIsNotClosedWhateverTheFunction(\Closure $use): void
    {
        [$stream, $peer] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
        $first = async(static fn(): mixed => $use($stream));
        self::waits($first);

        $error = self::refusal(static fn(): bool => fclose($stream));

        self::assertNotNull($error);
        fwrite($peer, str_repeat("line\n", 2000));
        fclose($peer);
        $first->await();
        self::assertTrue(fclose($stream));
    }

    /** @return iterable<array{\Closure}> */
    public static function usesOfStreams(): iterable
    {
        yield 'hash_update_stream()' => [static fn($stream): int => hash_update_stream(hash_init('md5'), $stream)];
        yield 'an alias: gzread()' => [static fn($stream): mixed => gzread($stream, 1)];
        yield 'an alias: gzpassthru()' => [static function ($stream): int {
            ob_start();
            try {
                return gzpassthru($stream);
            } finally {
                ob_end_clean();
            }
        }];
    }

    /**
     * @dataProvider interferences
     *
     * @param \Closure(resource): array{\Closure(): mixed, \Closure(): mixed} $make a call that waits for a stream, and another that would take away what it works on
     */
    #[DataProvider('interferences')]
    public function testWhatACallWorksOnIsNotTakenAway(string $extension, \Closure $make): void
    {
        if (!\extension_loaded($extension)) {
            self::markTestSkipped("$extension is not installed");
        }
        [$stream, $peer] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
        [$call, $other] = $make($stream);
        $first = async($call);
        self::waits($first);

        self::assertNotNull(self::refusal($other));

        fwrite($peer, str_repeat("line\n", 2000));
        fclose($peer);
        $first->await();
        $other();
    }

    /** @return iterable<string, array{string, \Closure}> */
    public static function interferences(): iterable
    {
        yield 'data of file_put_contents()' => ['standard', static fn($stream): array => [static fn(): mixed => file_put_contents('/dev/null', $stream), static fn(): bool => fclose($stream)]];
        yield 'the size of the pieces that are read' => ['standard', static fn($stream): array => [static fn(): mixed => stream_get_contents($stream), static fn(): int => stream_set_chunk_size($stream, 100_000)]];
        yield 'the file of a transfer' => ['curl', static function ($stream): array {
            $server = stream_socket_server('tcp://127.0.0.1:0');
            $file = tmpfile();
            $curl = curl_init('http://' . stream_socket_get_name($server, false));
            curl_setopt($curl, \CURLOPT_FILE, $file);
            $answer = static function () use ($server, $stream): void {
                fgets($stream);
                $client = stream_socket_accept($server);
                fread($client, 1);
                fwrite($client, "HTTP/1.0 200 OK\r\n\r\nanswer");
                stream_socket_shutdown($client, STREAM_SHUT_WR);
            };

            return [
                static function () use ($curl, $answer): void {
                    $answers = async($answer);
                    curl_exec($curl) || throw new \RuntimeException(curl_error($curl));
                    $answers->await();
                },
                static fn(): bool => fclose($file),
            ];
        }];
        yield 'a parameter of SQLite3' => ['sqlite3', static function ($stream): array {
            $statement = (new \SQLite3(':memory:'))->prepare('SELECT :data, :number');
            $statement->bindValue(':data', $stream, \SQLITE3_BLOB);

            return [static fn(): mixed => $statement->execute(), static fn(): bool => $statement->bindValue(':number', 1)];
        }];
        yield 'a style sheet' => ['xsl', static function ($stream): array {
            [$document, $sheet] = [new \DOMDocument(), new \DOMDocument()];
            $document->loadXML('<a/>');
            $sheet->loadXML('<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform" xmlns:php="http://php.net/xsl"><xsl:template match="a">'
                . '<xsl:value-of select="php:function(\'' . self::class . '::readLine\')"/></xsl:template></xsl:stylesheet>');
            $processor = new \XSLTProcessor();
            $processor->importStylesheet($sheet);
            $processor->registerPHPFunctions();
            self::$lines = $stream;

            return [static fn(): mixed => $processor->transformToXml($document), static fn(): mixed => $processor->importStylesheet(clone $sheet)];
        }];
        yield 'a document that is saved: a call' => ['dom', static fn($stream): array => self::savesDocument($stream, static fn(\DOMDocument $document): mixed => $document->documentElement->firstChild->remove())];
        yield 'a document that is saved: a property' => ['dom', static fn($stream): array => self::savesDocument($stream, static function (\DOMDocument $document): void {
            $document->documentElement->nodeValue = '';
        })];
        if (PHP_VERSION_ID >= 80300) {
            yield 'a document that is saved: a node for another document' => ['dom', static fn($stream): array => self::savesDocument($stream, static fn(\DOMDocument $document): mixed => (new \DOMDocument())->adoptNode($document->documentElement))];
        }
        yield 'a document that is saved: SimpleXML' => ['simplexml', static fn($stream): array => self::savesDocument($stream, static function (\DOMDocument $document): void {
            unset(simplexml_import_dom($document)->b[0]);
        })];
        yield 'a document that includes others' => ['dom', static function ($stream): array {
            SuspendingStream::open(static fn(): mixed => fgets($stream));
            $document = new \DOMDocument();
            $document->loadXML('<a xmlns:xi="http://www.w3.org/2001/XInclude"><b/><xi:include href="suspending://" parse="text"/></a>');

            return [static fn(): mixed => $document->xinclude(), static fn(): mixed => $document->documentElement->firstChild->remove()];
        }];
        yield 'an element of SimpleXML that is saved' => ['simplexml', static function ($stream): array {
            SuspendingStream::open(static fn(): mixed => fgets($stream));
            $element = new \SimpleXMLElement('<a>' . str_repeat('<b/>', 2000) . '</a>');

            return [static fn(): mixed => $element->asXML('suspending://'), static function () use ($element): void {
                $element->b[1]->c->d = 'text';
            }];
        }];
        yield 'a document in whose path a function waits' => ['dom', static function ($stream): array {
            self::$lines = $stream;
            $document = new \DOMDocument();
            $document->loadXML('<a><b/></a>');
            $path = new \DOMXPath($document);
            $path->registerNamespace('php', 'http://php.net/xpath');
            $path->registerPhpFunctions();

            return [static fn(): mixed => $path->query('//b[php:function("' . self::class . '::readLine") != ""]'), static fn(): mixed => $document->documentElement->replaceWith()];
        }];
        yield 'a document that is transformed' => ['xsl', static function ($stream): array {
            self::$lines = $stream;
            [$document, $sheet] = [new \DOMDocument(), new \DOMDocument()];
            $document->loadXML('<a><b/></a>');
            $sheet->loadXML('<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform" xmlns:php="http://php.net/xsl"><xsl:template match="b">'
                . '<xsl:value-of select="php:function(\'' . self::class . '::readLine\')"/></xsl:template></xsl:stylesheet>');
            $processor = new \XSLTProcessor();
            $processor->importStylesheet($sheet);
            $processor->registerPHPFunctions();

            return [static fn(): mixed => $processor->transformToXml($document), static fn(): mixed => $document->documentElement->firstChild->remove()];
        }];
        yield 'a transfer of curl' => ['curl', static function ($stream): array {
            $transfer = curl_init('file://' . __FILE__);
            curl_setopt_array($transfer, [\CURLOPT_RETURNTRANSFER => true, \CURLOPT_NOPROGRESS => false, \CURLOPT_PROGRESSFUNCTION => static function () use ($stream): int {
                fgets($stream);

                return 0;
            }]);

            return [static fn(): mixed => curl_exec($transfer), static fn(): mixed => curl_multi_getcontent($transfer)];
        }];
    }

    /**
     * @param resource $stream
     * @param \Closure(\DOMDocument): mixed $change
     *
     * @return array{\Closure(): mixed, \Closure(): mixed}
     */
    private static function savesDocument($stream, \Closure $change): array
    {
        SuspendingStream::open(static fn(): mixed => fgets($stream));
        $document = new \DOMDocument();
        $document->loadXML('<a>' . str_repeat('<b/>', 2000) . '</a>');

        return [static fn(): mixed => $document->save('suspending://'), static fn(): mixed => $change($document)];
    }

    public function testTasksSaveADocumentSideBySideAndReadIt(): void
    {
        self::needs('dom');
        SuspendingStream::open(self::gate(...));
        $document = new class () extends \DOMDocument {
            public string $own = '';
        };
        $document->loadXML('<a>' . str_repeat('<b/>', 2000) . '</a>');
        $tasks = array_map(static fn(): Task => async(static fn(): int|false => $document->save('suspending://')), [1, 2]);
        self::waits($tasks[1]);

        $document->own = 'value';

        self::assertSame([2000, 'value'], [$document->getElementsByTagName('b')->length, $document->own]);
        self::assertStringContainsString('<b/><b/>', (string) $document->saveXML());
        self::assertSame(self::end($tasks[0]), $tasks[1]->await());
    }

    public function testAProcessIsNotClosedWhileATaskReadsFromIt(): void
    {
        $process = proc_open(['cat'], [['pipe', 'r'], ['pipe', 'w']], $pipes);
        self::assertIsResource($process);
        $reader = async(static fn(): mixed => fgets($pipes[1]));
        self::waits($reader);

        $error = self::refusal(static fn(): int => proc_close($process));

        self::assertSame(['process #' . get_resource_id($process), 'fgets()'], [$error?->handle, $error?->call]);
        fwrite($pipes[0], "line\n");
        self::assertSame("line\n", $reader->await());
        self::assertSame(0, proc_close($process));
    }

    public function testAProcessThatIsDroppedWhileATaskReadsFromItIsClosedAfterwards(): void
    {
        $process = proc_open(['cat'], [['pipe', 'r'], ['pipe', 'w']], $pipes);
        self::assertIsResource($process);
        [$input, $output] = $pipes;
        unset($pipes);
        $reader = async(static fn(): mixed => fgets($output));
        self::waits($reader);

        unset($process);

        self::assertSame('resource', gettype($output));
        fwrite($input, "line\n");
        self::assertSame("line\n", $reader->await());
        self::assertSame('resource (closed)', gettype($output));
    }

    /** @var resource */
    private static $lines;

    public static function readLine(): string
    {
        return (string) fgets(self::$lines);
    }

    public function testASessionBelongsToTheTaskThatOpensOrClosesIt(): void
    {
        self::needs('session');
        $program = Subprocess::run(<<<'PHP'
            final class Handler extends SessionHandler
            {
                public static string $waits = '';
                public function open(string $path, string $name): bool { return self::wait('open') && parent::open($path, $name); }
                public function write(string $id, string $data): bool { return self::wait('write') && parent::write($id, $data); }
                private static function wait(string $method): bool
                {
                    while (self::$waits === $method) { delay(0.001); }
                    return true;
                }
            }
            function refused(Closure $use): bool {
                try { $use(); } catch (Weft\Runtime\HandleInUseError $error) { echo $error->handle, ' ', $error->call, "\n"; return true; }
                return false;
            }
            session_save_path(sys_get_temp_dir());
            session_id($id = 'weft' . bin2hex(random_bytes(8)));
            session_set_save_handler(new Handler(), false);
            run(function () use ($id) {
                Handler::$waits = 'open';
                $opens = async(session_start(...));
                yieldNow(); yieldNow();
                refused(session_start(...)) && refused(session_write_close(...)) && refused(session_destroy(...)) && refused(session_abort(...)) && refused(session_regenerate_id(...));
                echo session_status() === PHP_SESSION_ACTIVE && session_id() === $id ? 'active' : 'changed', "\n";
                Handler::$waits = '';
                echo json_encode($opens->await()), "\n";
                $_SESSION['key'] = 'value';
                Handler::$waits = 'write';
                $closes = async(session_write_close(...));
                yieldNow(); yieldNow();
                refused(session_destroy(...));
                Handler::$waits = '';
                echo json_encode($closes->await()), "\n";
                session_start();
                echo json_encode($_SESSION), json_encode(session_destroy()), "\n";
            });
            PHP, options: ['session.use_cookies=0', 'session.cache_limiter=', 'session.use_strict_mode=0']);

        $refusals = str_repeat("The session session_start()\n", 5);
        self::assertSame($refusals . "active\ntrue\nThe session session_write_close()\ntrue\n{\"key\":\"value\"}true\n", $program->output, $program->errors);
        self::assertSame(0, $program->exitCode, $program->errors);
    }

    public function testAnObjectThatReadsAFileBelongsToOneTask(): void
    {
        SuspendingStream::open(self::gate(...));
        $file = new \SplFileObject('suspending://', 'r+');
        $first = async(static fn(): string => $file->fgets());
        self::waits($first);

        self::assertSame('SplFileObject::fgets()', self::refusal(static fn(): string => $file->fread(1))?->call);
        self::assertSame("line\n", self::end($first));
    }

    public function testAFilterInWhichATaskWaitsIsNotRemoved(): void
    {
        stream_filter_register('waits', WaitingFilter::class);
        $stream = fopen('php://memory', 'w+');
        $filter = stream_filter_append($stream, 'waits', STREAM_FILTER_WRITE);
        $other = stream_filter_append($stream, 'string.toupper', STREAM_FILTER_READ);
        $writer = async(static fn(): int|false => fwrite($stream, "line\n"));
        self::waits($writer);

        $error = self::refusal(static fn(): bool => stream_filter_remove($filter));

        self::assertSame(['stream filter #' . get_resource_id($filter), 'fwrite()'], [$error?->handle, $error?->call]);
        self::assertTrue(stream_filter_remove($other));
        self::assertSame(5, self::end($writer));
        self::assertTrue(stream_filter_remove($filter));
        rewind($stream);
        self::assertSame("line\n", fgets($stream));
    }

    public function testADirectoryThatATaskReadsIsNotClosed(): void
    {
        SuspendingStream::open(self::gate(...));
        $directory = dir('suspending://');
        $reader = async(static fn(): string|false => $directory->read());
        self::waits($reader);

        $errors = array_map(self::refusal(...), [$directory->close(...), $directory->rewind(...), static fn() => closedir($directory->handle), static fn(): string|false => readdir($directory->handle)]);

        self::assertSame(array_fill(0, 4, 'Directory::read()'), array_map(static fn(?HandleInUseError $error): ?string => $error?->call, $errors));
        self::assertSame('Directory #' . spl_object_id($directory), $errors[0]?->handle);
        self::assertSame('file', self::end($reader));
        $directory->close();
    }

    public function testTheDirectoryThatWasOpenedLastIsFreedWhenTheTaskThatReadsItGoesOn(): void
    {
        SuspendingStream::open(self::gate(...));
        opendir('suspending://');
        $reader = async(static fn(): string|false => readdir());
        self::waits($reader);

        self::assertSame('The directory that was opened last', self::refusal(closedir(...))?->handle);
        $streams = count(get_resources('stream'));
        $other = opendir(__DIR__);

        self::assertSame('file', self::end($reader));
        self::assertCount($streams, get_resources('stream'));
        closedir($other);
    }

    public function testACopyReadsOneStreamAndWritesTheOther(): void
    {
        $from = SuspendingStream::open(self::gate(...));
        $to = fopen('php://memory', 'r+');
        $copy = async(static fn(): mixed => stream_copy_to_stream($from, $to, null));
        self::waits($copy);

        self::assertNotNull(self::refusal(static fn(): mixed => fgets($from)));
        self::assertNotNull(self::refusal(static fn(): mixed => fwrite($to, 'x')));
        self::assertSame('', fread($to, 1));
        self::assertSame(15, self::end($copy));
    }

    public function testStatementsAndResultsOfSqlite3BelongToTheirConnection(): void
    {
        self::needs('sqlite3');
        $database = new \SQLite3(':memory:');
        $database->enableExceptions(true);
        $database->createFunction('gate', self::gate(...));
        $statement = $database->prepare('SELECT 2');
        $result = $database->query('SELECT 3');
        $first = async(static fn(): mixed => $database->querySingle('SELECT gate() + 1'));
        self::waits($first);

        $errors = array_map(self::refusal(...), [
            static fn(): mixed => $database->exec('SELECT 2'),
            static fn(): mixed => $statement->execute(),
            static fn(): mixed => $result->fetchArray(),
        ]);

        self::assertSame(array_fill(0, 3, 'SQLite3::querySingle()'), array_map(static fn(?HandleInUseError $error): ?string => $error?->call, $errors));
        self::assertSame(1, self::end($first));
        self::assertSame([2], $statement->execute()->fetchArray(SQLITE3_NUM));
        self::assertSame([3], $result->fetchArray(SQLITE3_NUM));
    }

    public function testAStatementThatIsDroppedWhileAnotherTaskWaitsInItsConnectionIsFreedAfterwards(): void
    {
        self::needs('pdo_pgsql');
        [$pdo, $holder, $lock] = self::lockedDatabase();
        $statement = $pdo->prepare('SELECT ?::int');
        $statement->execute([1]);
        $weak = \WeakReference::create($statement);
        $first = async(static fn(): mixed => $pdo->query("SELECT pg_advisory_lock($lock), 7")->fetchColumn(1));
        self::waits($first);

        async(static function () use (&$statement): void {
            $statement = null;
        })->await();

        self::assertNull($weak->get());
        self::assertFalse($first->isDone());
        $holder->query("SELECT pg_advisory_unlock($lock)");
        self::assertSame(7, $first->await());
        self::assertSame([], $pdo->query("SELECT statement FROM pg_prepared_statements WHERE statement LIKE 'SELECT $1%'")->fetchAll());
    }

    public function testGarbageThatIsCollectedWhileAnotherTaskWaitsInItsConnectionIsFreedAfterwards(): void
    {
        self::needs('pdo_pgsql');
        [$pdo, $holder, $lock] = self::lockedDatabase();
        $statement = $pdo->prepare('SELECT ?::int, ?::text');
        $parameter = 'text';
        $statement->bindValue(1, 1);
        $statement->bindParam(2, $parameter);
        $statement->execute();
        $statement->bindColumn(1, $column);
        $cycle = new \stdClass();
        [$cycle->cycle, $cycle->statement] = [$cycle, $statement];
        unset($statement, $cycle);
        $first = async(static fn(): mixed => $pdo->query("SELECT pg_advisory_lock($lock), 7")->fetchColumn(1));
        self::waits($first);

        gc_collect_cycles();

        self::assertFalse($first->isDone());
        $holder->query("SELECT pg_advisory_unlock($lock)");
        self::assertSame(7, $first->await());
        gc_collect_cycles();
        self::assertSame([], $pdo->query("SELECT statement FROM pg_prepared_statements WHERE statement LIKE 'SELECT $1%'")->fetchAll());
    }

    public function testAStatementWithPropertiesThatIsDroppedMeanwhileKeepsThemUntilItIsFreed(): void
    {
        self::needs('pdo_pgsql');
        [$pdo, $holder, $lock] = self::lockedDatabase();
        $pdo->setAttribute(\PDO::ATTR_STATEMENT_CLASS, [StatementWithProperties::class, []]);
        /** @var StatementWithProperties $statement */
        $statement = $pdo->prepare('SELECT 1');
        $statement->declared = [new \stdClass()];
        $statement->dynamic = [new \stdClass()];
        $weak = \WeakReference::create($statement->dynamic[0]);
        self::assertCount(3, \get_object_vars($statement));
        $first = async(static fn(): mixed => $pdo->query("SELECT pg_advisory_lock($lock), 7")->fetchColumn(1));
        self::waits($first);

        unset($statement);
        for ($pass = 0; $pass < 3; $pass++) {
            gc_collect_cycles();
        }

        $holder->query("SELECT pg_advisory_unlock($lock)");
        self::assertSame(7, $first->await());
        self::assertNull($weak->get());
    }

    public function testAPreparedStatementOfSqliteIsDroppedWhileAnotherTaskWaitsInItsConnection(): void
    {
        self::needs('sqlite3');
        $file = (string) \tempnam(\sys_get_temp_dir(), 'weft');
        [$holder, $sqlite] = [new \SQLite3($file), new \SQLite3($file)];
        $holder->exec('CREATE TABLE numbers (number INTEGER)');
        $sqlite->busyTimeout(60_000);
        $statement = $sqlite->prepare('SELECT 1 FROM numbers');
        $holder->exec('BEGIN IMMEDIATE');
        $first = async(static fn(): bool => $sqlite->exec('INSERT INTO numbers VALUES (1)'));
        self::waits($first);

        unset($statement);
        $holder->exec('COMMIT');

        self::assertTrue($first->await());
        self::assertTrue($sqlite->close());
        $holder->close();
        \unlink($file);
    }

    public function testWhatIsReleasedAfterAnInterruptedReleaseKeepsItsConnection(): void
    {
        self::needs('pdo_pgsql');
        $pdo = self::lockedDatabase()[0];
        $work = static function () use ($pdo): void {
            $statement = $pdo->prepare('SELECT ?::int');
            $statement->execute([1]);
            $pipe = \popen('exec sleep 60', 'r');
            $pipe = null;
        };
        try {
            timeout(0.05, $work);
            self::fail('no timeout');
        } catch (TimeoutException) {
        }

        self::assertSame([1, 2], [$pdo->query('SELECT 1')->fetchColumn(), $pdo->query('SELECT 2')->fetchColumn()]);
    }

    public function testAnObjectWhoseReleaseWaitsIsNotFoundByOtherTasksAndItsHandleIsInUse(): void
    {
        self::needs('pdo_pgsql');
        self::$isOpen = true;
        [$pdo, $proxy] = self::databaseWithGate();
        $statement = $pdo->prepare('SELECT ?::int');
        $statement->execute([1]);
        $weak = \WeakReference::create($statement);
        self::$isOpen = false;
        $freed = async(static function () use (&$statement): void {
            $statement = null;
        });
        self::waits($freed);

        self::assertNull($weak->get());
        self::assertSame('the release of PDOStatement', self::refusal(static fn(): mixed => $pdo->query('SELECT 1'))?->call);
        self::end($freed);
        self::assertSame(1, $pdo->query('SELECT 1')->fetchColumn());
        $proxy->cancel();
    }

    public function testACancellationEndsTheReleaseOfAnObject(): void
    {
        self::needs('pdo_pgsql');
        self::$isOpen = true;
        [$pdo, $proxy] = self::databaseWithGate();
        $statement = $pdo->prepare('SELECT ?::int');
        $statement->execute([1]);
        self::$isOpen = false;
        $reached = false;
        $freed = async(static function () use (&$statement, &$reached): void {
            $statement = null;
            $reached = true;
        });
        self::waits($freed);

        $freed->cancel();
        self::$isOpen = true;
        try {
            $freed->await();
            self::fail('not cancelled');
        } catch (CancelledException) {
        }

        self::assertFalse($reached);
        self::assertNull(self::refusal(static function () use ($pdo): void {
            try {
                $pdo->query('SELECT 1');
            } catch (\PDOException) {
            }
        }));
        $proxy->cancel();
    }

    public function testAStatementOfMysqliThatIsDroppedWhileAnotherTaskWaitsIsFreedAfterwards(): void
    {
        [$database, $holder, $lock] = self::lockedMysqli();
        $statement = $database->prepare('SELECT 1');
        $statement->execute();
        $statement->get_result();
        $first = async(static fn(): mixed => $database->query("SELECT GET_LOCK('$lock', 60) + 6")->fetch_column());
        self::waits($first);

        async(static function () use (&$statement): void {
            $statement = null;
        })->await();

        $holder->query("SELECT RELEASE_LOCK('$lock')");
        self::assertSame(7, (int) $first->await());
        self::assertSame(1, (int) $database->query("SHOW SESSION STATUS LIKE 'Com_stmt_close'")->fetch_column(1));
    }

    public function testAChannelThatIsDroppedWhileAnotherTaskConsumesIsClosedAfterwards(): void
    {
        $connection = self::amqp();
        $dropped = new \AMQPChannel($connection);
        $queue = new \AMQPQueue(new \AMQPChannel($connection));
        $queue->setFlags(AMQP_AUTODELETE);
        $queue->declareQueue();
        $first = async(static function () use ($queue): string {
            $body = '';
            $queue->consume(static function (\AMQPEnvelope $message) use (&$body): bool {
                $body .= $message->getBody();

                return strlen($body) < 3;
            });

            return $body;
        });
        self::waits($first);
        delay(0.01);

        async(static function () use (&$dropped): void {
            $dropped = null;
        })->await();

        self::assertFalse($first->isDone());
        $exchange = new \AMQPExchange(new \AMQPChannel(self::amqp()));
        foreach (['a', 'b', 'c'] as $body) {
            $exchange->publish($body, $queue->getName());
        }
        self::assertSame('abc', $first->await());
        self::assertSame(1, $connection->getUsedChannels());
        $queue->delete();
    }

    public function testAChannelIsNotOpenedOnAConnectionInWhichAnotherTaskWaits(): void
    {
        $connection = self::amqp();
        $queue = new \AMQPQueue(new \AMQPChannel($connection));
        $queue->setFlags(AMQP_AUTODELETE);
        $queue->declareQueue();
        $first = async(static function () use ($queue): string {
            $queue->consume(static function (\AMQPEnvelope $message) use (&$body): bool {
                $body = $message->getBody();

                return false;
            });

            return $body;
        });
        self::waits($first);

        $error = self::refusal(static fn(): \AMQPChannel => new \AMQPChannel($connection));

        self::assertSame('AMQPQueue::consume()', $error?->call);
        self::assertStringStartsWith('AMQPConnection #' . spl_object_id($connection), $error->handle);
        self::assertSame(1, $connection->getUsedChannels());
        $exchange = new \AMQPExchange(new \AMQPChannel(self::amqp()));
        $exchange->publish('a', $queue->getName());
        self::assertSame('a', $first->await());
        self::assertTrue((new \AMQPChannel($connection))->isConnected());
        $queue->delete();
    }

    public function testTasksOpenChannelsOfOneConnectionOneAfterAnother(): void
    {
        $connection = self::amqp();
        Native\queueForHandles(true);
        $tasks = array_map(static fn(): Task => async(static fn(): \AMQPChannel => new \AMQPChannel($connection)), range(1, 3));

        $channels = array_map(static fn(Task $task): \AMQPChannel => $task->await(), $tasks);

        self::assertSame([1, 2, 3], array_map(static fn(\AMQPChannel $channel): int => $channel->getChannelId(), $channels));
        self::assertSame([true, true, true], array_map(static fn(\AMQPChannel $channel): bool => $channel->isConnected(), $channels));
    }

    public function testAskingWhetherAConnectionOfPgsqlIsBusyIsRefusedBecauseItTakesTheAnswer(): void
    {
        self::needs('pgsql');
        [, $holder, $lock] = self::lockedDatabase();
        $url = parse_url((string) getenv('DATABASE_URL'));
        $connection = pg_connect("host=$url[host] port=$url[port] dbname=weft user=$url[user] password=$url[pass]", PGSQL_CONNECT_FORCE_NEW);
        $first = async(static fn(): array => pg_fetch_row(pg_query($connection, "SELECT pg_advisory_lock($lock), 7")));
        self::waits($first);

        $error = self::refusal(static fn(): bool => pg_connection_busy($connection));

        self::assertSame('pg_query()', $error?->call);
        $holder->query("SELECT pg_advisory_unlock($lock)");
        self::assertSame(['', '7'], $first->await());
        self::assertFalse(pg_connection_busy($connection));
    }

    /**
     * @dataProvider requestsOfMysqli
     *
     * @param \Closure(\mysqli): mixed $request
     */
    #[DataProvider('requestsOfMysqli')]
    public function testARequestOfMysqliIsRefusedWhileAnotherTaskWaits(\Closure $request): void
    {
        [$database, $holder, $lock] = self::lockedMysqli();
        $first = async(static fn(): mixed => $database->query("SELECT GET_LOCK('$lock', 60) + 6")->fetch_column());
        self::waits($first);

        $error = self::refusal(static fn(): mixed => $request($database));

        self::assertSame('mysqli::query()', $error?->call);
        self::assertStringStartsWith('mysqli #' . spl_object_id($database), $error->handle);
        $holder->query("SELECT RELEASE_LOCK('$lock')");
        self::assertSame(7, (int) $first->await());
        self::assertSame(8, (int) $database->query('SELECT 8')->fetch_column());
    }

    /** @return iterable<string, array{\Closure(\mysqli): mixed}> */
    public static function requestsOfMysqli(): iterable
    {
        yield 'mysqli::get_warnings()' => [static fn(\mysqli $database): mixed => $database->get_warnings()];
        yield 'mysqli_get_warnings()' => [static fn(\mysqli $database): mixed => mysqli_get_warnings($database)];
        yield 'new mysqli_stmt()' => [static fn(\mysqli $database): mixed => new \mysqli_stmt($database, 'SELECT 7')];
        yield 'new mysqli_result()' => [static fn(\mysqli $database): mixed => new \mysqli_result($database)];
    }

    /**
     * @dataProvider unbufferedResults
     *
     * @param \Closure(string): array{\Traversable<array<mixed>>, \Closure(): mixed, \Closure(): mixed} $query the result, a read of it, and another query
     */
    #[DataProvider('unbufferedResults')]
    public function testAnIterationThatWaitsForARowKeepsOtherTasksOut(\Closure $query): void
    {
        [, $holder, $lock] = self::lockedMysqli();
        // Each row is larger than the buffer of the server, so it is sent before the next one is made.
        $numbers = '(SELECT 1 AS number UNION ALL SELECT 2 UNION ALL SELECT 3) numbers';
        [$result, $fetch, $other] = $query("SELECT number, REPEAT('x', 100000), IF(number = 3, GET_LOCK('$lock', 60), 0) FROM $numbers");
        $numbers = [];
        $first = async(static function () use ($result, &$numbers): void {
            foreach ($result as $row) {
                $numbers[] = (int) $row['number'];
            }
        });
        timeout(60, static function () use (&$numbers): void {
            while (count($numbers) < 2) {
                delay(0.001);
            }
        });
        self::waits($first);

        $errors = array_map(self::refusal(...), [$fetch, $other, static fn(): array => iterator_to_array($result)]);

        $call = 'an iteration over ' . $result::class;
        self::assertSame([$call, $call, $call], array_map(static fn(?HandleInUseError $error): ?string => $error?->call, $errors));
        $holder->query("SELECT RELEASE_LOCK('$lock')");
        $first->await();
        self::assertSame([1, 2, 3], $numbers);
    }

    /** @return iterable<string, array{\Closure(string): array{\Traversable<array<mixed>>, \Closure(): mixed, \Closure(): mixed}}> */
    public static function unbufferedResults(): iterable
    {
        yield 'mysqli_result' => [static function (string $query): array {
            $database = self::lockedMysqli()[0];
            $result = $database->query($query, MYSQLI_USE_RESULT);

            return [$result, static fn(): mixed => $result->fetch_row(), static fn(): mixed => $database->query('SELECT 1')];
        }];
        yield 'PDOStatement' => [static function (string $query): array {
            self::needs('pdo_mysql');
            $url = parse_url((string) getenv('WEFT_MYSQL_DSN'));
            $pdo = new \PDO("mysql:host=$url[host];port=$url[port];dbname=weft", $url['user'], $url['pass'], [PdoMysql::attribute('USE_BUFFERED_QUERY') => false]);
            $result = $pdo->query($query);

            return [$result, static fn(): mixed => $result->fetch(), static fn(): mixed => $pdo->query('SELECT 1')];
        }];
    }

    /**
     * @dataProvider iterations
     *
     * @param \Closure(\PDOStatement): mixed $iterate
     */
    #[DataProvider('iterations')]
    public function testAnIterationIsRefusedWhileAnotherTaskWaits(\Closure $iterate): void
    {
        $pdo = self::database();
        $statement = $pdo->query('SELECT 1 UNION ALL SELECT 2');
        $first = async(static fn(): mixed => $pdo->query('SELECT gate() + 1')->fetchColumn());
        self::waits($first);

        $error = self::refusal(static fn(): mixed => $iterate($statement));

        self::assertSame('PDO::query()', $error?->call);
        self::assertStringStartsWith('PDO #' . spl_object_id($pdo), $error->handle);
        self::assertSame(1, (int) self::end($first));
        self::assertCount(2, iterator_to_array($statement));
    }

    /** @return iterable<string, array{\Closure(\PDOStatement): mixed}> */
    public static function iterations(): iterable
    {
        yield 'foreach' => [static function (\PDOStatement $statement): void {
            foreach ($statement as $row) {
                self::fail('a row: ' . json_encode($row));
            }
        }];
        yield 'iterator_to_array()' => [static fn(\PDOStatement $statement): array => iterator_to_array($statement)];
        yield 'getIterator()' => [static fn(\PDOStatement $statement): \Iterator => $statement->getIterator()];
        yield 'yield from' => [static fn(\PDOStatement $statement): array => iterator_to_array((static fn(): \Generator => yield from $statement)())];
        yield 'unpacked arguments' => [static fn(\PDOStatement $statement): array => [...$statement]];
    }

    public function testTheNextStepOfAnIterationIsRefusedWhileAnotherTaskWaits(): void
    {
        $pdo = self::database();
        $rows = $pdo->query('SELECT 1 UNION ALL SELECT 2')->getIterator();
        $rows->rewind();
        $first = async(static fn(): mixed => $pdo->query('SELECT gate() + 1')->fetchColumn());
        self::waits($first);

        self::assertSame('PDO::query()', self::refusal($rows->next(...))?->call);
        self::assertSame(1, (int) $rows->current()[0]);
        self::assertSame(1, (int) self::end($first));
        $rows->next();
        self::assertSame(2, (int) $rows->current()[0]);
    }

    public function testASubclassThatHasAnIteratorOfItsOwnKeepsIt(): void
    {
        $pdo = self::database();
        $pdo->setAttribute(\PDO::ATTR_STATEMENT_CLASS, [StatementWithIterator::class, []]);

        self::assertSame(['own'], iterator_to_array($pdo->query('SELECT 1')));
        $pdo->setAttribute(\PDO::ATTR_STATEMENT_CLASS, [StatementWithProperties::class, []]);
        self::assertSame([[1, 1]], array_map(array_values(...), iterator_to_array($pdo->query('SELECT 1 AS a, 1 AS b', \PDO::FETCH_NUM))));
    }

    public function testAConnectionWhosePersistentOneOpensIsAnotherHandle(): void
    {
        self::needs('pdo_pgsql');
        $listener = stream_socket_server('tcp://127.0.0.1:0');
        $port = explode(':', (string) stream_socket_get_name($listener, false))[1];
        $open = static fn(string $database): \PDO => new \PDO("pgsql:host=127.0.0.1;port=$port;dbname=$database", 'user', 'password', [\PDO::ATTR_PERSISTENT => true]);
        $first = async(static fn(): \PDO => $open('first'));
        self::waits($first);

        $others = array_map(static fn(): \PDO => new \PDO('sqlite::memory:'), range(1, 20));
        $second = async(static fn(): \PDO => $open('second'));
        self::waits($second);
        $error = self::refusal(static fn(): \PDO => $open('first'));

        self::assertCount(20, $others);
        self::assertNotNull($error);
        $first->cancel();
        $second->cancel();
        self::assertSame(1, (int) $others[0]->query('SELECT 1')->fetchColumn());
    }

    public function testTasksTakeTurnsBetweenTheCallsOnSharedTransfersOfCurlNotInsideOfThem(): void
    {
        self::needs('curl');
        $server = stream_socket_server('tcp://127.0.0.1:0');
        $transfers = curl_multi_init();
        curl_multi_add_handle($transfers, curl_init('http://' . stream_socket_get_name($server, false)));
        $connection = null;
        while ($connection === null) {
            curl_multi_exec($transfers, $active);
            $connection = @stream_socket_accept($server, 0.01) ?: null;
        }
        $order = '';
        $use = static function (string $name) use ($transfers, &$order): void {
            for ($i = 0; $i < 1000; $i++) {
                curl_multi_exec($transfers, $active);
                $order .= $name;
            }
        };

        $tasks = [async(static fn() => $use('a')), async(static fn() => $use('b'))];
        foreach ($tasks as $task) {
            $task->await();
        }

        self::assertSame(2000, strlen($order));
        self::assertMatchesRegularExpression('/ab+a/', $order);
    }

    public function testALargeObjectBelongsToItsConnection(): void
    {
        self::needs('pdo_pgsql');
        $url = parse_url((string) getenv('DATABASE_URL'));
        [$class, $create, $open] = PHP_VERSION_ID < 80400 ? [\PDO::class, 'pgsqlLOBCreate', 'pgsqlLOBOpen'] : ['Pdo\\Pgsql', 'lobCreate', 'lobOpen'];
        [$pdo, $holder] = array_map(static fn(): \PDO => new $class("pgsql:host=$url[host];port=$url[port];dbname=weft", $url['user'], $url['pass']), [1, 2]);
        $lock = random_int(1, PHP_INT_MAX);
        $holder->query("SELECT pg_advisory_lock($lock)");
        $pdo->beginTransaction();
        $object = $pdo->$open($pdo->$create(), 'w+');
        $first = async(static fn(): mixed => $pdo->query("SELECT pg_advisory_xact_lock($lock), 7")->fetchColumn(1));
        self::waits($first);

        $errors = array_map(self::refusal(...), [
            static fn(): mixed => fwrite($object, 'ab'),
            static fn(): mixed => fread($object, 2),
            static fn(): mixed => fseek($object, 0),
            static fn(): mixed => stream_copy_to_stream($object, fopen('php://memory', 'w')),
        ]);

        self::assertSame(array_fill(0, 4, 'PDO::query()'), array_map(static fn(?HandleInUseError $error): ?string => $error?->call, $errors));
        self::assertStringStartsWith('stream #' . get_resource_id($object), $errors[0]->handle);
        $holder->query("SELECT pg_advisory_unlock($lock)");
        self::assertSame(7, $first->await());
        self::assertSame(2, fwrite($object, 'ab'));
        rewind($object);
        self::assertSame('ab', fread($object, 2));
    }

    public function testAPersistentConnectionOfRedisIsOneHandleWithoutAPool(): void
    {
        self::needs('redis');
        $server = RedisServer::start() ?? self::markTestSkipped('redis-server is not installed');
        $pooling = ini_set('redis.pconnect.pooling_enabled', '0');
        try {
            $open = static function () use ($server): \Redis {
                $redis = new \Redis();
                $redis->pconnect('127.0.0.1', $server->port);

                return $redis;
            };
            [$one, $two] = [$open(), $open()];
            $first = async(static fn(): string => $one->blPop(['list'], 0)[1]);
            self::waits($first);

            $errors = array_map(self::refusal(...), [static fn(): mixed => $two->get('key'), $open, $two->close(...)]);

            self::assertSame(array_fill(0, 3, 'Redis::blPop()'), array_map(static fn(?HandleInUseError $error): ?string => $error?->call, $errors));
            // Another id is another connection.
            $three = new \Redis();
            self::assertTrue($three->pconnect('127.0.0.1', $server->port, 0.0, 'three'));
            self::assertFalse($three->get('key'));
            $server->command('RPUSH list value');
            self::assertSame('value', $first->await());
            self::assertFalse($two->get('key'));
            self::assertTrue($two->close());
        } finally {
            ini_set('redis.pconnect.pooling_enabled', (string) $pooling);
        }
    }

    public function testATaskQueuesForARedisObjectThatConnectsAgain(): void
    {
        self::needs('redis');
        $server = RedisServer::start() ?? self::markTestSkipped('redis-server is not installed');
        $redis = new \Redis();
        $redis->connect('127.0.0.1', $server->port);
        $redis->set('key', 'value');
        $server->command('CLIENT KILL TYPE normal');

        Native\queueForHandles(true);

        $values = timeout(Timing::DEADLINE, static fn(): array => all(array_fill(0, 3, static fn(): mixed => $redis->get('key'))));

        self::assertSame(['value', 'value', 'value'], $values);
    }

    public function testTasksOpenPersistentConnectionsOfAPoolOfRedisSideBySide(): void
    {
        self::needs('redis');
        $server = RedisServer::start() ?? self::markTestSkipped('redis-server is not installed');
        $open = static function () use ($server): bool {
            $redis = new \Redis();

            return $redis->pconnect('127.0.0.1', $server->port) && $redis->ping();
        };
        $tasks = [async($open), async($open)];

        self::assertSame([true, true], array_map(static fn(Task $task): bool => $task->await(), $tasks));
    }

    public function testATransferOfCurlBelongsToOneTask(): void
    {
        self::needs('curl');
        $curl = self::transfer(self::gate(...));
        $first = async(static fn(): mixed => curl_exec($curl));
        self::waits($first);

        $error = self::refusal(static fn(): mixed => curl_setopt($curl, CURLOPT_USERAGENT, 'other'));

        self::assertSame('curl_exec()', $error->call);
        self::assertStringEndsWith('(file://' . __FILE__ . ')', $error->handle);
        self::assertSame(0, curl_errno($curl));
        self::assertTrue(self::end($first));
    }

    public function testASoapClientBelongsToOneTask(): void
    {
        self::needs('soap');
        $client = new class (null, ['location' => 'http://localhost/', 'uri' => 'urn:test']) extends \SoapClient {
            public function __doRequest(string $request, string $location, string $action, int $version, bool $oneWay = false, ?string $uriParserClass = null): ?string
            {
                HandleInUseTest::gate();

                return '<?xml version="1.0"?><E:Envelope xmlns:E="http://schemas.xmlsoap.org/soap/envelope/"><E:Body><r><return>7</return></r></E:Body></E:Envelope>';
            }
        };
        $first = async(static fn(): mixed => $client->__soapCall('number', []));
        self::waits($first);

        self::assertStringStartsWith('SoapClient@anonymous', self::refusal(static fn(): mixed => $client->__soapCall('number', []))->handle);
        self::assertSame('7', self::end($first));
    }

    /** @dataProvider functionsOfObjects */
    #[DataProvider('functionsOfObjects')]
    public function testAnArgumentOfAWrongClassIsPhpsTypeError(string $extension, string $function, mixed ...$arguments): void
    {
        self::needs($extension);
        $objects = [new \stdClass(), new \ArrayObject(), new class () {
            /** @var list<int> */
            public array $data = [1];
        }];
        foreach ($objects as $object) {
            $error = async(static function () use ($function, $object, $arguments): ?\TypeError {
                try {
                    $function($object, ...$arguments);
                } catch (\TypeError $error) {
                    return $error;
                }

                return null;
            })->await();

            self::assertStringStartsWith("$function(): Argument #1 (", (string) $error?->getMessage());
        }
    }

    /** @return iterable<array{string, string, 2?: mixed, 3?: mixed}> */
    public static function functionsOfObjects(): iterable
    {
        yield ['mysqli', 'mysqli_query', 'SELECT 1'];
        yield ['mysqli', 'mysqli_close'];
        yield ['mysqli', 'mysqli_stmt_execute'];
        yield ['mysqli', 'mysqli_stmt_fetch'];
        yield ['mysqli', 'mysqli_fetch_assoc'];
        yield ['mysqli', 'mysqli_free_result'];
        yield ['pgsql', 'pg_query', 'SELECT 1'];
        yield ['ldap', 'ldap_bind'];
    }

    public function testTasksCanQueueForAHandle(): void
    {
        Native\queueForHandles(true);
        $pdo = self::database();
        $order = [];
        $tasks = [];
        foreach (range(1, 5) as $number) {
            $tasks[] = async(static function () use ($pdo, $number, &$order): void {
                $pdo->exec('SELECT pause(0.005)');
                $order[] = $number;
            });
        }
        foreach ($tasks as $task) {
            $task->await();
        }

        self::assertSame([1, 2, 3, 4, 5], $order);
    }

    public function testATaskThatQueuesForAHandleCanBeCancelledAndIsNamedInReports(): void
    {
        Native\queueForHandles(true);
        $pdo = self::database();
        $first = async(static fn(): mixed => $pdo->query('SELECT gate() + 1')->fetchColumn());
        self::waits($first);
        $second = async(static fn(): mixed => $pdo->query('SELECT 2')->fetchColumn());
        $third = async(static fn(): mixed => $pdo->query('SELECT 3')->fetchColumn());
        self::waits($third);

        [$wait] = array_values(array_filter(tasks(), static fn($task): bool => $task->id === $second->id()));
        self::assertSame('PDO #' . spl_object_id($pdo) . ' (sqlite::memory:), which another task uses', $wait->waitsFor);
        self::assertStringStartsWith(__FILE__, (string) $wait->place);

        $second->cancel();
        self::assertSame([1, 3], [(int) self::end($first), (int) $third->await()]);
        self::assertTrue($second->isDone());
    }

    public function testANewcomerDoesNotOvertakeTasksThatQueue(): void
    {
        Native\queueForHandles(true);
        $pdo = self::database();
        $order = [];
        $first = async(static function () use ($pdo, &$order): void {
            $pdo->exec('SELECT gate()');
            $order[] = 'first';
            // The second task was given its turn but has not run yet.
            $pdo->exec('SELECT 1');
            $order[] = 'first again';
        });
        self::waits($first);
        $second = async(static function () use ($pdo, &$order): void {
            $pdo->exec('SELECT pause(0.001)');
            $order[] = 'second';
        });
        self::waits($second);
        self::end($first);
        $second->await();

        self::assertSame(['first', 'second', 'first again'], $order);
    }

    public function testTasksThatQueueForAStreamThatIsClosedAllGoOn(): void
    {
        Native\queueForHandles(true);
        $stream = SuspendingStream::open(self::gate(...));
        $reader = async(static fn(): mixed => fgets($stream));
        self::waits($reader);
        $closer = async(static fn(): bool => fclose($stream));
        self::waits($closer);
        $others = array_map(static fn(): Task => async(static function () use ($stream): string|false {
            try {
                return fread($stream, 1);
            } catch (\TypeError) {
                return 'closed';
            }
        }), [1, 2]);
        self::waits($others[1]);

        self::assertSame("line\n", self::end($reader));
        self::assertTrue($closer->await());
        self::assertSame(['closed', 'closed'], array_map(static fn(Task $task): mixed => timeout(60, static fn(): mixed => $task->await()), $others));
    }

    public function testATaskThatQueuedForAConnectionUsesTheOneThatItsObjectHasThen(): void
    {
        Native\queueForHandles(true);
        [$database, $holder, $lock] = self::lockedMysqli();
        $url = parse_url((string) getenv('WEFT_MYSQL_DSN'));
        $order = [];
        $first = async(static fn(): mixed => $database->query("SELECT GET_LOCK('$lock', 60) + 6")->fetch_column());
        self::waits($first);
        $second = async(static function () use ($database, $url, &$order): void {
            $database->close();
            $database->__construct($url['host'], $url['user'], $url['pass'], 'weft', (int) $url['port']);
            $database->query('SELECT SLEEP(0.05)');
            $order[] = 'second';
        });
        self::waits($second);
        $third = async(static function () use ($database, &$order): void {
            $order[] = $database->query("SELECT 'third'")->fetch_column();
        });
        self::waits($third);

        $holder->query("SELECT RELEASE_LOCK('$lock')");
        self::assertSame(7, (int) $first->await());
        $second->await();
        timeout(60, static fn(): mixed => $third->await());
        self::assertSame(['second', 'third'], $order);
    }

    public function testAWriterGoesOnWhileAReaderQueuesBeforeIt(): void
    {
        Native\queueForHandles(true);
        [$stream, $peer] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
        stream_set_blocking($peer, false);
        $length = 2_000_000;
        $tasks = [
            'first reader' => async(static fn(): mixed => fread($stream, 1)),
            'first writer' => async(static fn(): mixed => fwrite($stream, str_repeat('a', $length))),
        ];
        yieldNow();
        yieldNow();
        $tasks['second reader'] = async(static fn(): mixed => fread($stream, 1));
        yieldNow();
        $tasks['second writer'] = async(static fn(): mixed => fwrite($stream, 'question'));
        self::waits($tasks['second writer']);

        // The peer answers when it has got everything.
        $received = '';
        timeout(60, static function () use ($peer, $length, &$received): void {
            while (strlen($received) < $length + strlen('question')) {
                $received .= fread($peer, 65536);
                delay(0.0001);
            }
        });
        fwrite($peer, '12');

        self::assertSame(
            ['first reader' => '1', 'first writer' => $length, 'second reader' => '2', 'second writer' => 8],
            array_map(static fn(Task $task): mixed => timeout(60, static fn(): mixed => $task->await()), $tasks),
        );
    }

    public function testTheTurnOfATaskThatIsCancelledIsNotLost(): void
    {
        Native\queueForHandles(true);
        $started = 0;
        $stream = SuspendingStream::open(static function () use (&$started): void {
            $started++;
            self::gate();
        });
        $writer = async(static fn(): mixed => fwrite($stream, 'ab'));
        self::waits($writer);
        $closer = async(static fn(): bool => fclose($stream));
        self::waits($closer);
        // Nobody reads, but the task that closes the stream needs both sides and was first.
        $reader = async(static fn(): mixed => fgets($stream));
        self::waits($reader);
        self::assertSame(1, $started);

        $closer->cancel();
        self::waits($reader);

        self::assertSame(2, $started);
        self::assertSame("line\n", self::end($reader));
        self::assertSame(2, $writer->await());
    }

    /** @dataProvider targets */
    #[DataProvider('targets')]
    public function testPasswordsAreNotNamed(string $target, string $expected): void
    {
        $pdo = self::database();

        self::assertSame('PDO #' . spl_object_id($pdo) . " ($expected)", HandleName::of($pdo, $target));
    }

    /** @return iterable<array{string, string}> */
    public static function targets(): iterable
    {
        yield ['pgsql:host=db;dbname=app;user=app;password=se cret', 'pgsql:host=db;dbname=app;user=app;password=…'];
        yield ['pgsql:host=db password=secret dbname=app', 'pgsql:host=db password=… dbname=app'];
        yield ["pgsql:host=db;password='it\\'s a secret';dbname=app", 'pgsql:host=db;password=…;dbname=app'];
        yield ['odbc:DSN=x;UID=a;PWD=secret', 'odbc:DSN=x;UID=a;PWD=…'];
        yield ['mysql:host=db;dbname=app', 'mysql:host=db;dbname=app'];
    }

    /** Waits until the test opens the gate. */
    public static function gate(): int
    {
        while (!self::$isOpen) {
            delay(0.001);
        }

        return 0;
    }

    public static function pause(float $seconds): int
    {
        delay($seconds);

        return 0;
    }

    private static function database(): \PDO
    {
        $pdo = new \PDO('sqlite::memory:');
        @$pdo->sqliteCreateFunction('pause', self::pause(...));
        @$pdo->sqliteCreateFunction('gate', self::gate(...));

        return $pdo;
    }

    /**
     * A connection, another one that holds a lock, and its number: queries that ask for the lock wait until the holder unlocks it.
     *
     * @return array{\PDO, \PDO, int}
     */
    private static function lockedDatabase(): array
    {
        $url = parse_url((string) getenv('DATABASE_URL'));
        [$pdo, $holder] = array_map(static fn(): \PDO => new \PDO("pgsql:host=$url[host];port=$url[port];dbname=weft", $url['user'], $url['pass']), [1, 2]);
        $lock = random_int(1, PHP_INT_MAX);
        $holder->query("SELECT pg_advisory_lock($lock)");

        return [$pdo, $holder, $lock];
    }

    /**
     * A connection whose answers wait at the gate.
     *
     * @return array{\PDO, Task<mixed>}
     */
    private static function databaseWithGate(): array
    {
        $url = parse_url((string) getenv('DATABASE_URL'));
        $listener = stream_socket_server('tcp://127.0.0.1:0');
        $port = explode(':', (string) stream_socket_get_name($listener, false))[1];
        $proxy = async(static function () use ($listener, $url): void {
            $client = stream_socket_accept($listener, 60);
            $server = stream_socket_client("tcp://$url[host]:$url[port]");
            $answers = async(static function () use ($client, $server): void {
                while (($data = (string) fread($server, 65536)) !== '') {
                    self::gate();
                    fwrite($client, $data);
                }
            });
            try {
                while (($data = (string) fread($client, 65536)) !== '') {
                    fwrite($server, $data);
                }
            } finally {
                $answers->cancel();
            }
        });
        $pdo = new \PDO("pgsql:host=127.0.0.1;port=$port;dbname=weft;sslmode=disable;gssencmode=disable", $url['user'], $url['pass']);

        return [$pdo, $proxy];
    }

    private static function amqp(): \AMQPConnection
    {
        self::needs('amqp');
        $url = parse_url((string) getenv('AMQP_URL'));
        $connection = new \AMQPConnection(['host' => $url['host'], 'port' => $url['port'], 'login' => $url['user'], 'password' => $url['pass'], 'read_timeout' => 60]);
        $connection->connect();

        return $connection;
    }

    /**
     * As {@see self::lockedDatabase()}, with the name of the lock.
     *
     * @return array{\mysqli, \mysqli, string}
     */
    private static function lockedMysqli(): array
    {
        self::needs('mysqli');
        $url = parse_url((string) getenv('WEFT_MYSQL_DSN'));
        [$database, $holder] = array_map(static fn(): \mysqli => new \mysqli($url['host'], $url['user'], $url['pass'], 'weft', (int) $url['port']), [1, 2]);
        $lock = 'fix' . bin2hex(random_bytes(8));
        $holder->query("SELECT GET_LOCK('$lock', 0)")->fetch_all();

        return [$database, $holder, $lock];
    }

    private static function transfer(\Closure $callback): \CurlHandle
    {
        $curl = curl_init('file://' . __FILE__);
        curl_setopt($curl, CURLOPT_WRITEFUNCTION, static function (\CurlHandle $curl, string $data) use ($callback): int {
            $callback();

            return strlen($data);
        });

        return $curl;
    }

    /** Opens the gate and returns the result of the task that has waited for it. */
    private static function end(Task $task): mixed
    {
        self::$isOpen = true;

        return $task->await();
    }

    /** Lets the task run until it waits. */
    private static function waits(Task $task): void
    {
        yieldNow();
        yieldNow();
        self::assertFalse($task->isDone());
    }

    private static function refusal(\Closure $use): ?HandleInUseError
    {
        try {
            $use();
        } catch (HandleInUseError $error) {
            return $error;
        }

        return null;
    }

    private static function needs(string $extension): void
    {
        if (!extension_loaded($extension)) {
            self::markTestSkipped("needs the extension $extension");
        }
    }
}

final class WaitingFilter extends \php_user_filter
{
    public function filter($in, $out, &$consumed, bool $closing): int
    {
        $closing || HandleInUseTest::gate();
        while (($bucket = stream_bucket_make_writeable($in)) !== null) {
            $consumed += $bucket->datalen;
            stream_bucket_append($out, $bucket);
        }

        return PSFS_PASS_ON;
    }
}

#[\AllowDynamicProperties]
final class StatementWithProperties extends \PDOStatement
{
    public mixed $declared = null;

    protected function __construct() {}
}

final class StatementWithIterator extends \PDOStatement
{
    protected function __construct() {}

    public function getIterator(): \Iterator
    {
        return new \ArrayIterator(['own']);
    }
}
