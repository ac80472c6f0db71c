<?php

declare(strict_types=1);

namespace Weft\Tests\Protobuf;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Tests\Execution;

/** What `weft proto:generate` writes, and what it refuses. */
final class GeneratorTest extends TestCase
{
    private const ROOT = __DIR__ . '/../..';
    private string $directory;

    protected function setUp(): void
    {
        $this->directory = sys_get_temp_dir() . '/weft-generator-' . bin2hex(random_bytes(8));
        mkdir($this->directory);
    }

    protected function tearDown(): void
    {
        exec('rm -rf ' . escapeshellarg($this->directory));
    }

    public function testTheGeneratedClassesOfTheTestsAreWhatTheGeneratorWrites(): void
    {
        [$code, $output] = $this->generate(['users.proto', 'everything.proto', 'legacy.proto'], __DIR__ . '/Fixtures', 'Weft\Tests\Protobuf\Generated');

        self::assertSame([0, "15 classes in {$this->directory}/out\n"], [$code, $output]);
        exec('diff -r ' . escapeshellarg("{$this->directory}/out") . ' ' . escapeshellarg(__DIR__ . '/Generated') . ' 2>&1', $differences);
        self::assertSame([], $differences);
    }

    public function testTheClassesThatComeWithWeftAreWhatTheGeneratorWrites(): void
    {
        $classes = \Weft\Protobuf\Descriptor\DescriptorFile::class;
        $files = [$classes, \Weft\Protobuf\Compiler\PluginFile::class, \Weft\Protobuf\WellKnown\TypeFile::class, \Weft\Protobuf\WellKnown\ApiFile::class];
        foreach (['Duration', 'Timestamp', 'Struct', 'FieldMask', 'Wrappers', 'Empty'] as $name) {
            $files[] = "Weft\\Protobuf\\WellKnown\\{$name}File";
        }
        $set = \Weft\Protobuf\Codec::decode(\Weft\Protobuf\Descriptor\FileDescriptorSet::class, \Weft\Protobuf\FileSet::encode(...$files));
        $request = new \Weft\Protobuf\Compiler\CodeGeneratorRequest(
            fileToGenerate: array_map(static fn($file): string => (string) $file->name, $set->file),
            parameter: 'psr4=Weft\Protobuf',
            protoFile: $set->file,
        );
        $response = \Weft\Protobuf\Internal\Generator\Plugin::run(\Weft\Protobuf\Codec::encode($request));
        $response = \Weft\Protobuf\Codec::decode(\Weft\Protobuf\Compiler\CodeGeneratorResponse::class, $response);

        self::assertNull($response->error);
        self::assertGreaterThan(80, count($response->file));
        foreach ($response->file as $file) {
            self::assertStringEqualsFile(self::ROOT . "/src/Protobuf/{$file->name}", (string) $file->content, (string) $file->name);
        }
    }

    /** @return iterable<string, array{string, string}> */
    public static function refused(): iterable
    {
        yield 'a syntax error' => ['syntax = "proto3"; message {', 'bad.proto:1:28'];
        yield 'two messages that PHP cannot tell apart' => [
            'syntax = "proto3"; package p; message Ab {} message AB {}',
            'p.AB of bad.proto and p.Ab of bad.proto would both become the class P\AB',
        ];
        yield 'a message called like the client of a service' => [
            'syntax = "proto3"; package p; message XClient {} service X {}',
            'the client of the service X of bad.proto and p.XClient of bad.proto would both become the class P\XClient',
        ];
        yield 'fields that become the same property' => [
            'syntax = "proto2"; package p; message A { optional int32 a_b = 1; optional int32 aB = 2; }',
            'bad.proto: p.A has two fields that would both become $aB; aB is one of them',
        ];
        yield 'oneofs that become the same method' => [
            'syntax = "proto3"; package p; message A { oneof a_b { int32 c = 1; } oneof aB { int32 d = 2; } }',
            'bad.proto: the oneofs aB and a_b of p.A would both become the method aBCase()',
        ];
        yield 'methods that become the same' => [
            'syntax = "proto3"; package p; message A {} service S { rpc GetA(A) returns (A); rpc get_a(A) returns (A); }',
            'bad.proto: p.S.get_a and GetA would both become the method geta()',
        ];
        yield 'a namespace that is none' => [
            'syntax = "proto3"; package p; option php_namespace = "1-2"; message A {}',
            'bad.proto: the option php_namespace = "1-2" is not a PHP namespace',
        ];
        yield 'a prefix that begins no class' => [
            'syntax = "proto3"; package p; option php_class_prefix = "Foo-Bar"; message A {}',
            'bad.proto: the option php_class_prefix = "Foo-Bar" cannot begin the name of a PHP class',
        ];
        yield 'a prefix that makes a reserved word' => [
            'syntax = "proto3"; package p; option php_class_prefix = "F"; message or {}',
            'bad.proto: p.or of bad.proto would become the class P\For, which is a reserved word of PHP',
        ];
        yield 'a namespace of metadata that is none' => [
            'syntax = "proto3"; package p; option php_metadata_namespace = "B\\\\Meta-Data\\\\1x"; message A {}',
            'bad.proto: the option php_metadata_namespace = "B\Meta-Data\1x" is not a PHP namespace',
        ];
        foreach (['Closure', 'dateTimeImmutable', 'Countable'] as $class) {
            yield "a message called like PHP's $class" => [
                "syntax = \"proto3\"; message $class {}",
                "bad.proto: $class of bad.proto would become the class $class, which PHP has; give the file a package or the option php_namespace",
            ];
        }
        yield 'a service called with its prefix like a class of PHP' => [
            'syntax = "proto3"; option php_class_prefix = "Array"; service Iterator {}',
            'the service Iterator of bad.proto would become the class ArrayIterator, which PHP has',
        ];
        yield 'an import that is missing' => ['syntax = "proto3"; import "nope.proto";', 'nope.proto: File not found'];
    }

    /** @dataProvider refused */
    #[DataProvider('refused')]
    public function testAFileThatNoClassesCanBeMadeOfIsNamedWithTheSymbol(string $proto, string $problem): void
    {
        file_put_contents("{$this->directory}/bad.proto", $proto);
        [$code, $output] = $this->generate(['bad.proto'], $this->directory);

        self::assertSame(1, $code, $output);
        self::assertStringContainsString($problem, $output);
        self::assertDirectoryDoesNotExist("{$this->directory}/out");
    }

    public function testClassesThatAnAutoloaderWouldNotFindAreNamedWithWhatToDo(): void
    {
        file_put_contents("{$this->directory}/api.proto", 'syntax = "proto3"; package api; message User {}');
        [$code, $output] = $this->generate(['api.proto'], $this->directory, 'App\Generated');

        self::assertSame(0, $code, $output);
        self::assertSame(<<<TEXT
            2 classes in {$this->directory}/out
            The classes of api.proto are in Api, not in App\Generated: with option php_namespace = "App\\\\Generated\\\\Api"; they would be

            TEXT, $output);
        self::assertFileExists("{$this->directory}/out/Api/User.php");
    }

    public function testTwoClassesOfTheSamePathAreRefused(): void
    {
        file_put_contents("{$this->directory}/a.proto", 'syntax = "proto3"; package api; message User {}');
        file_put_contents("{$this->directory}/b.proto", 'syntax = "proto3"; package b; option php_namespace = "App\\\\Api"; message User {}');
        [$code, $output] = $this->generate(['a.proto', 'b.proto'], $this->directory, 'App');

        self::assertSame([1, "b.proto: two classes would both be written to Api/User.php; give the files php_namespace options below App\n"], [$code, $output]);
    }

    public function testAMissingProtocIsNamedAndSoIsThePackageThatHasIt(): void
    {
        [$code, $output] = $this->generate(['users.proto'], __DIR__ . '/Fixtures', protoc: '/nowhere/protoc');

        self::assertSame([1, "/nowhere/protoc was not found: install it (Debian: apt install protobuf-compiler libprotobuf-dev), or set PROTOC to its path\n"], [$code, $output]);
    }

    public function testAProtocWithoutTheFilesOfGoogleSaysWhichPackageHasThem(): void
    {
        // A protoc away from its ../include does not find them, as Debian's does not without libprotobuf-dev.
        $protoc = "{$this->directory}/protoc";
        copy(trim((string) shell_exec('command -v protoc')), $protoc);
        chmod($protoc, 0o755);

        [$code, $output] = $this->generate(['everything.proto'], __DIR__ . '/Fixtures', protoc: $protoc);

        self::assertSame(1, $code, $output);
        self::assertStringContainsString('google/protobuf/any.proto: File not found.', $output);
        self::assertStringContainsString('apt install libprotobuf-dev', $output);
    }

    public function testThePluginOfProtocWritesTheSameFilesAsTheCommand(): void
    {
        $plugin = "{$this->directory}/plugin";
        file_put_contents($plugin, "#!/bin/sh\nexec " . implode(' ', array_map(escapeshellarg(...), [...self::php(), self::ROOT . '/bin/protoc-gen-weft'])) . "\n");
        chmod($plugin, 0o755);
        mkdir("{$this->directory}/out");
        exec('cd ' . escapeshellarg(__DIR__ . '/Fixtures') . " && protoc --plugin=protoc-gen-weft={$plugin} --weft_out={$this->directory}/out users.proto 2>&1", $output, $code);

        self::assertSame([0, []], [$code, $output]);
        self::assertFileEquals(__DIR__ . '/Generated/Api/Users.php', "{$this->directory}/out/Weft/Tests/Protobuf/Generated/Api/Users.php");
        exec('cd ' . escapeshellarg(__DIR__ . '/Fixtures') . " && protoc --plugin=protoc-gen-weft={$plugin} --weft_out=nope=1:{$this->directory}/out users.proto 2>&1", $refusal, $code);
        self::assertSame([1, ['--weft_out: unknown option "nope=1"; there is psr4=NAMESPACE']], [$code, $refusal]);
    }

    public function testThePluginSaysWhoStartsIt(): void
    {
        exec('echo nonsense | ' . implode(' ', array_map(escapeshellarg(...), [...self::php(), self::ROOT . '/bin/protoc-gen-weft'])) . ' 2>&1', $output, $code);

        self::assertSame(1, $code);
        self::assertCount(1, $output);
        self::assertStringStartsWith('protoc-gen-weft: standard input does not hold a request of protoc, which starts this program (protoc --plugin=', $output[0]);
    }

    /**
     * @param list<string> $files
     *
     * @return array{int, string} exit code and output
     */
    private function generate(array $files, string $directory, string $psr4 = '', string $protoc = 'protoc'): array
    {
        $command = [...self::php(), self::ROOT . '/bin/weft', 'proto:generate', ...$files, '--out', "{$this->directory}/out", '--psr4', $psr4];
        $generated = Execution::of($command, ['PROTOC' => $protoc], $directory);

        return [$generated->exitCode, $generated->output . $generated->errors];
    }

    /** @return list<string> */
    private static function php(): array
    {
        return [PHP_BINARY, '-d', 'extension=' . (getenv('WEFT_EXTENSION') ?: self::ROOT . '/target/debug/libweft.so')];
    }
}
