<?php

declare(strict_types=1);

namespace Weft\Tests\Examples;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Bench\HttpAnswer;
use Weft\Bench\Port;
use Weft\Bench\Server;

require_once __DIR__ . '/../../bench/autoload.php';

/** The rules of the Rinha de Backend 2023 Q3, asked of two running instances that share a database. */
abstract class RinhaConformance extends TestCase
{
    private const UUID = '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}';
    private const PERSON = ['apelido' => 'josé', 'nome' => 'José Roberto', 'nascimento' => '2000-10-01', 'stack' => ['C#', 'Node', 'Oracle']];

    /** @var list<Server> */
    private static array $instances = [];
    /** @var list<int> */
    private static array $ports = [];
    private static string $schema = '';

    /** @return string the value of INSERTS for both instances */
    abstract protected static function inserts(): string;

    public static function setUpBeforeClass(): void
    {
        $url = (string) \getenv('DATABASE_URL');
        self::assertNotSame('', $url, 'DATABASE_URL is not set: scripts/services up');
        self::$schema = 'rinha_' . \bin2hex(\random_bytes(4));
        self::database()->exec('CREATE EXTENSION IF NOT EXISTS pg_trgm');
        self::database()->exec('CREATE SCHEMA ' . self::$schema);
        foreach ([0, 1] as $i) {
            self::$ports[$i] = Port::free();
            $command = [\PHP_BINARY, '-d', 'extension=' . \getenv('WEFT_EXTENSION'), \dirname(__DIR__, 2) . '/examples/rinha/app.php'];
            $environment = [
                'PORT' => (string) self::$ports[$i],
                'DATABASE_URL' => $url . '?options=-c%20search_path%3D' . self::$schema . ',public',
                'INSERTS' => static::inserts(),
            ];
            self::$instances[$i] = Server::start($command, $environment, \sys_get_temp_dir() . '/weft-rinha-' . self::$ports[$i] . '.log', self::$ports[$i]);
        }
    }

    public static function tearDownAfterClass(): void
    {
        foreach (self::$instances as $instance) {
            $instance->stop();
            @\unlink($instance->log);
        }
        self::$instances = [];
        self::database()->exec('DROP SCHEMA ' . self::$schema . ' CASCADE');
    }

    protected function setUp(): void
    {
        self::database()->exec('TRUNCATE ' . self::$schema . '.pessoas');
    }

    public function testAPersonThatWasStoredIsReadFromTheOtherInstance(): void
    {
        [$status, $headers] = $this->create(self::PERSON);

        self::assertSame(201, $status);
        self::assertMatchesRegularExpression('#^/pessoas/' . self::UUID . '$#', $headers['location']);
        [$status, $headers, $body] = $this->request('GET', $headers['location'], instance: 1);
        self::assertSame(200, $status);
        self::assertStringStartsWith('application/json', $headers['content-type']);
        $person = \json_decode($body, true);
        self::assertMatchesRegularExpression('/^' . self::UUID . '$/', $person['id']);
        self::assertSame(self::PERSON, \array_diff_key($person, ['id' => 0]));
    }

    /** @dataProvider acceptable */
    #[DataProvider('acceptable')]
    public function testAnAcceptablePersonIsStoredAsItIs(array $change): void
    {
        [$status, $headers] = $this->create($change + self::PERSON);

        self::assertSame(201, $status);
        $stored = \json_decode($this->request('GET', $headers['location'])[2], true);
        foreach ($change as $field => $value) {
            self::assertSame($value, $stored[$field]);
        }
    }

    public static function acceptable(): iterable
    {
        yield 'no stack' => [['stack' => null]];
        yield 'an empty stack' => [['stack' => []]];
        yield 'a skill twice' => [['stack' => ['PHP', 'PHP']]];
        yield 'the longest texts' => [['apelido' => \str_repeat('é', 32), 'nome' => \str_repeat('ñ', 100), 'stack' => [\str_repeat('日', 32)]]];
        yield '29 February of a leap year' => [['nascimento' => '2000-02-29']];
        yield 'characters that mean something to SQL and JSON' => [['apelido' => "'; DROP {}[]\",", 'stack' => ['{a,"b"}', '\\', '%_']]];
    }

    public function testAStackThatIsMissingIsNull(): void
    {
        [$status, $headers] = $this->create(\array_diff_key(self::PERSON, ['stack' => 0]));

        self::assertSame(201, $status);
        self::assertStringContainsString('"stack":null', $this->request('GET', $headers['location'])[2]);
    }

    /** @dataProvider unacceptable */
    #[DataProvider('unacceptable')]
    public function testAPersonThatARuleExcludesIsNotProcessable(array $change): void
    {
        self::assertSame(422, $this->create($change + self::PERSON)[0]);
        self::assertSame('0', $this->request('GET', '/contagem-pessoas')[2]);
    }

    public static function unacceptable(): iterable
    {
        yield 'nickname null' => [['apelido' => null]];
        yield 'name null' => [['nome' => null]];
        yield 'date null' => [['nascimento' => null]];
        yield 'nickname empty' => [['apelido' => '']];
        yield 'nickname of 33 characters' => [['apelido' => \str_repeat('a', 33)]];
        yield 'name of 101 characters' => [['nome' => \str_repeat('a', 101)]];
        yield 'skill of 33 characters' => [['stack' => ['PHP', \str_repeat('a', 33)]]];
        yield 'skill empty' => [['stack' => ['']]];
        yield 'month 13' => [['nascimento' => '2000-13-01']];
        yield '30 February' => [['nascimento' => '2000-02-30']];
        yield '29 February of another year' => [['nascimento' => '1900-02-29']];
        yield 'day 0' => [['nascimento' => '2000-01-00']];
        yield 'one digit' => [['nascimento' => '2000-1-01']];
        yield 'the other order' => [['nascimento' => '01-10-2000']];
        yield 'with a time' => [['nascimento' => '2000-10-01T00:00:00Z']];
        yield 'with a line feed' => [['nascimento' => "2000-10-01\n"]];
        yield 'words' => [['nascimento' => 'yesterday']];
        yield 'U+0000' => [['nome' => "a\0b"]];
    }

    public function testANicknameThatIsTakenIsNotProcessableOnEitherInstance(): void
    {
        self::assertSame(201, $this->create(self::PERSON)[0]);

        self::assertSame(422, $this->create(['nome' => 'Another'] + self::PERSON)[0]);
        self::assertSame(422, $this->create(['nome' => 'Another'] + self::PERSON, instance: 1)[0]);
        self::assertSame(201, $this->create(['apelido' => 'JOSÉ'] + self::PERSON)[0]);
    }

    /** @dataProvider malformed */
    #[DataProvider('malformed')]
    public function testAPersonWithAValueOfTheWrongTypeIsABadRequest(string $body): void
    {
        self::assertSame(400, $this->request('POST', '/pessoas', $body)[0]);
        self::assertSame('0', $this->request('GET', '/contagem-pessoas')[2]);
    }

    public static function malformed(): iterable
    {
        yield 'no JSON' => ['{"apelido":'];
        yield 'nothing' => [''];
        yield 'a list' => ['[]'];
        yield 'a string' => ['"josé"'];
        yield 'not UTF-8' => ["{\"apelido\":\"\xff\"}"];
        foreach (
            [
                'nickname a number' => ['apelido' => 1],
                'name a number' => ['nome' => 1],
                'name a boolean' => ['nome' => true],
                'date a number' => ['nascimento' => 20001001],
                'stack a string' => ['stack' => 'PHP'],
                'stack a number' => ['stack' => 1],
                'stack an object' => ['stack' => ['a' => 'PHP']],
                'skill a number' => ['stack' => [1, 'PHP']],
                'skill null' => ['stack' => [null]],
                'a wrong type beside a missing value' => ['apelido' => null, 'nome' => 1],
            ] as $name => $change
        ) {
            yield $name => [\json_encode($change + self::PERSON)];
        }
    }

    public function testSomebodyWhoIsNotThereIsNotFound(): void
    {
        self::assertSame(404, $this->request('GET', '/pessoas/01890000-0000-7000-8000-000000000000')[0]);
        self::assertSame(404, $this->request('GET', '/pessoas/no-uuid')[0]);
    }

    /** @dataProvider terms */
    #[DataProvider('terms')]
    public function testASearchFindsItsTermInNicknameNameAndStack(string $term, array $found): void
    {
        $this->create(['apelido' => 'ana', 'nome' => 'Ana Barbosa', 'nascimento' => '1985-09-23', 'stack' => ['Node', 'PostgreSQL']]);
        $this->create(['apelido' => 'Zé%', 'nome' => '50% off_', 'nascimento' => '1985-09-23', 'stack' => ['C\\C++']]);

        [$status, $headers, $body] = $this->request('GET', '/pessoas?t=' . \rawurlencode($term), instance: 1);

        self::assertSame(200, $status);
        self::assertStringStartsWith('application/json', $headers['content-type']);
        $nicknames = \array_column(\json_decode($body, true), 'apelido');
        \sort($nicknames);
        self::assertSame($found, $nicknames);
    }

    public static function terms(): iterable
    {
        yield 'part of a nickname' => ['an', ['ana']];
        yield 'part of a name, in another case' => ['BARB', ['ana']];
        yield 'part of a skill' => ['gres', ['ana']];
        yield 'accents in another case' => ['ZÉ', ['Zé%']];
        yield 'a single letter of both' => ['o', ['Zé%', 'ana']];
        yield 'percent is itself' => ['%', ['Zé%']];
        yield 'percent between' => ['a%a', []];
        yield 'underscore is itself' => ['_', ['Zé%']];
        yield 'backslash is itself' => ['c\\c', ['Zé%']];
        yield 'across a space' => ['ana bar', ['ana']];
        yield 'not across two fields' => ['anaana', []];
        yield 'not across two fields with a space' => ['ana ana', []];
        yield 'nobody' => ['xyzzy', []];
        yield 'a quote' => ["'", []];
        yield 'U+0000' => ["a\0", []];
        yield 'not UTF-8' => ["\xff", []];
    }

    public function testASearchFindsFiftyAtMost(): void
    {
        self::database()->exec(
            'INSERT INTO ' . self::$schema . ".pessoas SELECT gen_random_uuid(), 'n' || i, 'x', '2000-01-01', NULL, 'n' || i FROM generate_series(1, 60) AS i",
        );

        self::assertCount(50, \json_decode($this->request('GET', '/pessoas?t=n')[2], true));
    }

    public function testASearchWithoutATermIsABadRequest(): void
    {
        self::assertSame(400, $this->request('GET', '/pessoas')[0]);
        self::assertSame(400, $this->request('GET', '/pessoas?t=')[0]);
        self::assertSame(400, $this->request('GET', '/pessoas?q=a')[0]);
    }

    public function testTheCountIsPlainTextAndNeverOld(): void
    {
        self::assertSame('0', $this->request('GET', '/contagem-pessoas', instance: 1)[2]);
        $this->create(self::PERSON);

        [$status, $headers, $body] = $this->request('GET', '/contagem-pessoas', instance: 1);

        self::assertSame(200, $status);
        self::assertStringStartsWith('text/plain', $headers['content-type']);
        self::assertSame('1', $body);
    }

    public function testEachNicknameIsStoredOnceAcrossBothInstances(): void
    {
        $statuses = $this->createAtOnce(200, static fn (int $i): string => 'n' . \intdiv($i, 4));

        self::assertSame([201 => 50, 422 => 150], $statuses);
        self::assertSame('50', $this->request('GET', '/contagem-pessoas')[2]);
    }

    /**
     * Sends all requests, to the two instances in turn, before it reads the first response.
     *
     * @param \Closure(int): string $nickname of each person
     *
     * @return array<int, int> number of responses by status
     */
    protected function createAtOnce(int $people, \Closure $nickname): array
    {
        $sockets = [];
        for ($i = 0; $i < $people; ++$i) {
            $body = \json_encode(['apelido' => $nickname($i)] + self::PERSON);
            $sockets[] = $socket = \stream_socket_client('tcp://127.0.0.1:' . self::$ports[$i % 2], timeout: 30.0);
            $length = \strlen($body);
            \fwrite($socket, "POST /pessoas HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: $length\r\n\r\n$body");
        }
        $statuses = \array_count_values(\array_map(static fn ($socket): int => (int) \substr(\stream_get_contents($socket), 9, 3), $sockets));
        \ksort($statuses);

        return $statuses;
    }

    /** Transactions that stored the people who are there now. */
    protected function transactions(): int
    {
        return self::database()->query('SELECT count(DISTINCT xmin::text) FROM ' . self::$schema . '.pessoas')->fetchColumn();
    }

    /** @return array{int, array<string, string>, string} status, headers by lower-case name, body */
    private function create(array $person, int $instance = 0): array
    {
        return $this->request('POST', '/pessoas', \json_encode($person), $instance);
    }

    /** @return array{int, array<string, string>, string} status, headers by lower-case name, body */
    private function request(string $method, string $path, ?string $body = null, int $instance = 0): array
    {
        $options = ['method' => $method, 'timeout' => 30, 'follow_location' => 0];
        if ($body !== null) {
            $options += ['content' => $body, 'header' => 'Content-Type: application/json'];
        }
        $url = 'http://127.0.0.1:' . self::$ports[$instance] . $path;
        $answer = HttpAnswer::of($url, $options);
        self::assertIsString($answer->body, "$method $path has no answer: " . self::$instances[$instance]->logTail());
        $headers = [];
        foreach (\array_slice($answer->headers, 1) as $line) {
            [$name, $value] = \explode(':', $line, 2);
            $headers[\strtolower($name)] = \trim($value);
        }

        return [$answer->status, $headers, $answer->body];
    }

    private static function database(): \PDO
    {
        $parts = \parse_url((string) \getenv('DATABASE_URL'));
        $dsn = \sprintf('pgsql:host=%s;port=%d;dbname=%s', $parts['host'], $parts['port'], \ltrim($parts['path'], '/'));

        return new \PDO($dsn, $parts['user'], $parts['pass']);
    }
}
