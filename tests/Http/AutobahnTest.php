<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

final class AutobahnTest extends HttpTestCase
{
    /** Of compression, of which kosoku cannot run most: its text cases fail before they send anything. */
    private const LEFT_OUT = ['12.*', '13.*'];

    public function testTheCasesOfTheAutobahnTestSuitePass(): void
    {
        $tool = \dirname(__DIR__, 2) . '/var/kosoku/bin/kosoku';
        if (!is_file($tool)) {
            self::markTestSkipped('kosoku is not installed: scripts/kosoku');
        }
        $server = $this->serve(<<<'PHP'
            $routes->websocket("/", static function (WebSocket $socket) {
                foreach ($socket as $message) {
                    $message->isBinary ? $socket->sendBinary($message->data) : $socket->send($message->data);
                }
            }, new WebSocketOptions(origins: ["*"], messageBytes: 17 << 20, compress: true));
            PHP);
        $directory = new Directory();
        $leftOut = implode(' ', array_map(static fn(string $cases): string => '-x ' . escapeshellarg($cases), self::LEFT_OUT));

        exec("timeout 300 $tool -m fuzzingclient $leftOut -o $directory->path $server->address 2>&1", $output);
        $reports = json_decode((string) @file_get_contents("$directory->path/index.json"), true) ?? [];
        $directory->remove();

        $cases = array_merge(...array_values($reports));
        self::assertGreaterThan(240, \count($cases), implode("\n", $output));
        $failed = array_filter($cases, static fn(array $case): bool => !\in_array($case['behavior'], ['OK', 'NON-STRICT', 'INFORMATIONAL'], true) || !\in_array($case['behaviorClose'], ['OK', 'INFORMATIONAL'], true));
        self::assertSame([], $failed, implode("\n", $output));
        self::assertSame('', $server->log());
    }
}
