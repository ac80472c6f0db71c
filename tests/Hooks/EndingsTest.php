<?php

declare(strict_types=1);

namespace Weft\Tests\Hooks;

use PHPUnit\Framework\TestCase;
use Weft\Tests\Runtime\Subprocess;

/** A task is suspended inside a call of a library while its process, or the task itself, ends: each kind of call, each ending. */
final class EndingsTest extends TestCase
{
    private const EXTENSIONS = ['mysqlnd', 'pdo', 'pdo_sqlite', 'curl', 'soap'];

    /** PHP code of a function call() that suspends in a callback of a library for as long as it lives, by extension. */
    private const CALLS = [
        'PDO::query()' => ['pdo_sqlite', <<<'PHP'
            $pdo = new PDO('sqlite::memory:');
            $pdo->sqliteCreateFunction('pause', fn() => pause());
            $pdo->query('SELECT pause()');
            PHP],
        'PDOStatement::execute()' => ['pdo_sqlite', <<<'PHP'
            $pdo = new PDO('sqlite::memory:', options: [PDO::ATTR_ERRMODE => PDO::ERRMODE_SILENT]);
            $pdo->sqliteCreateFunction('pause', fn() => pause());
            $pdo->prepare('SELECT pause(?)')->execute([1]);
            PHP],
        'PDOStatement::fetch()' => ['pdo_sqlite', <<<'PHP'
            $pdo = new PDO('sqlite::memory:');
            $pdo->sqliteCreateFunction('pause', fn(int $n) => $n === 1 ? 1 : pause());
            $rows = $pdo->query('SELECT pause(1) UNION ALL SELECT pause(2)');
            $rows->fetch();
            $rows->fetch();
            PHP],
        'curl_exec()' => ['curl', <<<'PHP'
            $curl = curl_init('file://' . __FILE__);
            curl_setopt($curl, CURLOPT_WRITEFUNCTION, fn() => pause());
            curl_exec($curl);
            PHP],
        'curl_multi_exec()' => ['curl', <<<'PHP'
            $curl = curl_init('file://' . __FILE__);
            curl_setopt($curl, CURLOPT_WRITEFUNCTION, fn() => pause());
            $multi = curl_multi_init();
            curl_multi_add_handle($multi, $curl);
            do { curl_multi_exec($multi, $active); } while ($active);
            PHP],
        'fgets()' => [null, <<<'PHP'
            class Slow { public $context; function stream_open() { return true; } function stream_read() { pause(); return "x\n"; } function stream_eof() { return false; } }
            stream_wrapper_register('slow', Slow::class);
            fgets(fopen('slow://', 'r'));
            PHP],
        'file_get_contents()' => [null, <<<'PHP'
            class Slow { public $context; function stream_open() { return true; } function stream_stat() { return []; } function stream_read() { pause(); return ''; } function stream_eof() { return true; } }
            stream_wrapper_register('slow', Slow::class);
            file_get_contents('slow://');
            PHP],
        'SoapClient::__call()' => ['soap', <<<'PHP'
            $client = new class (null, ['location' => 'http://localhost/', 'uri' => 'urn:test']) extends SoapClient {
                function __doRequest($request, $location, $action, $version, $oneWay = false): ?string { return (string) pause(); }
            };
            $client->number();
            PHP],
    ];

    /** PHP code, exit code and output. */
    private const ENDINGS = [
        'the task is cancelled' => ['$task = async(call(...)); delay(0.001); $task->cancel(); try { $task->await(); } catch (CancelledException) { echo "cancelled\n"; }', 0, "finally\ncancelled\nshutdown\n"],
        'the task times out' => ['try { timeout(0.001, call(...)); } catch (Weft\Runtime\TimeoutException) { echo "timed out\n"; }', 0, "finally\ntimed out\nshutdown\n"],
        'another task fails' => ['async(call(...)); delay(0.001); throw new LogicException("mine");', 255, "finally\nshutdown\n", 'Uncaught LogicException: mine'],
        'exit()' => ['async(call(...)); delay(0.001); exit(3);', 3, "shutdown\nfinally\n"],
        'the event loop ends' => ['detach(call(...)); delay(0.001);', 0, "finally\nshutdown\n"],
        'a fatal error' => ['async(call(...)); delay(0.001); ini_set("memory_limit", "16M"); str_repeat("x", 20_000_000);', 255, "shutdown\n", 'Allowed memory size'],
        'a fatal error in a shutdown function' => ['async(call(...)); delay(0.001); register_shutdown_function(function () { trigger_error("mine", E_USER_ERROR); }); exit(3);', 255, "shutdown\n", 'Fatal error: mine'],
    ];

    /** @dataProvider matrix */
    public function testAProcessEndsWhileACallIsSuspended(?string $extension, string $call, string $ending, int $exitCode, string $output, string $errors = ''): void
    {
        if ($extension !== null && !extension_loaded($extension)) {
            self::markTestSkipped("needs the extension $extension");
        }
        $program = Subprocess::run(<<<PHP
            register_shutdown_function(fn() => print("shutdown\n"));
            function pause(): int { delay(3600); return 0; }
            function call(): void { try { $call } finally { echo "finally\n"; } }
            run(function () { $ending });
            PHP, extensions: self::EXTENSIONS);

        self::assertNull($program->signal, $program->errors);
        self::assertSame($output, $program->output, $program->errors);
        $errors === '' ? self::assertSame('', $program->errors) : self::assertStringContainsString($errors, $program->errors);
        self::assertSame($exitCode, $program->exitCode, $program->errors);
    }

    /** @return iterable<string, array<int, mixed>> */
    public static function matrix(): iterable
    {
        foreach (self::CALLS as $call => [$extension, $code]) {
            foreach (self::ENDINGS as $name => $ending) {
                yield "$call: $name" => [$extension, $code, ...$ending];
            }
        }
    }
}
