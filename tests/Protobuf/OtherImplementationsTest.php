<?php

declare(strict_types=1);

namespace Weft\Tests\Protobuf;

use PHPUnit\Framework\TestCase;
use Weft\Protobuf\Codec;
use Weft\Protobuf\DecodingException;
use Weft\Protobuf\Json;
use Weft\Tests\Protobuf\Generated\Everything\Everything;
use Weft\Tests\Protobuf\Generated\Legacy\Legacy;

/** What google/protobuf writes in other languages is what Weft reads, and the other way round. */
final class OtherImplementationsTest extends TestCase
{
    private const FIXTURES = __DIR__ . '/Fixtures';
    private const CLASSES = ['everything.Everything' => Everything::class, 'legacy.Legacy' => Legacy::class];

    private string $directory;

    protected function setUp(): void
    {
        $this->directory = sys_get_temp_dir() . '/weft-protobuf-' . bin2hex(random_bytes(8));
        mkdir($this->directory);
    }

    protected function tearDown(): void
    {
        $this->execute(['rm', '-rf', $this->directory]);
    }

    public function testRandomMessagesOfPythonComeBackWithTheSameBytesAndTheSameJson(): void
    {
        $python = (getenv('WEFT_VAR') ?: dirname(__DIR__, 2) . '/var') . '/protobuf/python/bin/python';
        if (!is_executable($python)) {
            self::markTestSkipped('scripts/protobuf-conformance installs the Python that this compares with');
        }
        $this->execute([$python, '-m', 'grpc_tools.protoc', '-I' . self::FIXTURES, "--python_out={$this->directory}", 'everything.proto', 'legacy.proto']);
        $seed = random_int(0, 1_000_000);
        $lines = explode("\n", trim($this->execute([$python, self::FIXTURES . '/random_messages.py', $this->directory, (string) $seed, '1500'])));
        self::assertCount(1500, $lines);
        Codec::encode(new \Weft\Protobuf\WellKnown\Timestamp);
        foreach ($lines as $i => $line) {
            [$name, $bytes, $json] = explode(' ', $line);
            [$bytes, $json, $class] = [base64_decode($bytes), base64_decode($json), self::CLASSES[$name]];
            $message = Codec::decode($class, $bytes);
            self::assertSame(bin2hex($bytes), bin2hex(Codec::encode($message)), "message {$i} of seed {$seed}");
            self::assertEquals(self::tree($json), self::tree(Json::encode($message)), "JSON of message {$i} of seed {$seed}");
            self::assertEquals(self::tree($json), self::tree(Json::encode(Json::decode($class, $json))), "from JSON, message {$i} of seed {$seed}");
        }
    }

    public function testClassesThatProtocMakesForGoogleProtobufAreEncodedAndDecodedByTheirOwnCode(): void
    {
        if (!is_dir('/usr/share/php/Google/Protobuf')) {
            self::markTestSkipped('the PHP library of google/protobuf is not installed (Debian: php-google-protobuf)');
        }
        $proto = str_replace('Weft\\\\Tests\\\\Protobuf\\\\Generated\\\\Api', 'GoogleGenerated', (string) file_get_contents(self::FIXTURES . '/users.proto'));
        file_put_contents("{$this->directory}/google_users.proto", $proto);
        $this->execute(['protoc', "-I{$this->directory}", "--php_out={$this->directory}", 'google_users.proto']);
        $load = function (string $class): void {
            foreach ([$this->directory, '/usr/share/php'] as $root) {
                if (is_file($file = "{$root}/" . strtr($class, '\\', '/') . '.php')) {
                    // The library is older than some versions of PHP, which deprecate what they compile.
                    @require $file;
                }
            }
        };
        spl_autoload_register($load);
        try {
            $class = 'GoogleGenerated\User';
            $theirs = (new $class)->setId(228)->setEmail('dmitry.k@test.tld')->setName('Dmitry K.')->setRating(228.53);
            $ours = new Generated\Api\User(id: 228, email: 'dmitry.k@test.tld', name: 'Dmitry K.', rating: 228.53);

            self::assertSame(bin2hex(Codec::encode($ours)), bin2hex(Codec::encode($theirs)));
            self::assertEquals($ours, Codec::decode(Generated\Api\User::class, Codec::encode($theirs)));
            self::assertSame('Dmitry K.', Codec::decode($class, Codec::encode($ours))->getName());
            // Their JSON of 64-bit integers needs the extension bcmath.
            self::assertSame(Json::encode(new Generated\Api\User(name: 'x')), Json::encode((new $class)->setName('x')));
            self::assertSame('x', Json::decode($class, '{"name":"x"}')->getName());
            $this->expectException(DecodingException::class);
            $this->expectExceptionMessage('Cannot decode GoogleGenerated\User: ');
            Codec::decode($class, "\x12\x05a");
        } finally {
            spl_autoload_unregister($load);
        }
    }

    /** JSON without the order of keys. */
    private static function tree(string $json): mixed
    {
        $sort = static function (mixed $value) use (&$sort): mixed {
            if (!is_array($value)) {
                return $value;
            }
            $value = array_map($sort, $value);
            array_is_list($value) || ksort($value, SORT_STRING);

            return $value;
        };

        return $sort(json_decode($json, associative: true, flags: JSON_THROW_ON_ERROR));
    }

    /** @param list<string> $command */
    private function execute(array $command): string
    {
        $process = proc_open($command, [1 => ['pipe', 'w']], $pipes);
        self::assertNotFalse($process);
        $output = (string) stream_get_contents($pipes[1]);
        self::assertSame(0, proc_close($process), implode(' ', $command));

        return $output;
    }
}
