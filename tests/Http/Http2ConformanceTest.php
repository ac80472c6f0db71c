<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

final class Http2ConformanceTest extends HttpTestCase
{
    /** The port speaks HTTP/1.1 too: what is no preface is a request of that, and is answered 400 before the connection closes. */
    private const OF_HTTP2_ONLY = ['Sends invalid connection preface'];

    public function testH2specFindsNothingInStrictMode(): void
    {
        $tool = \dirname(__DIR__, 2) . '/var/h2spec/h2spec';
        if (!is_file($tool)) {
            self::markTestSkipped('h2spec is not built: scripts/h2spec');
        }
        $server = $this->serve('$routes->fallback(static function (Request $request) { $request->body(); return Response::text("hello"); });');
        [$host, $port] = explode(':', $server->address);
        $report = (string) tempnam(sys_get_temp_dir(), 'h2spec');
        exec("timeout 600 $tool --strict --timeout 20 --host $host --port $port --junit-report $report 2>&1", $output);
        $cases = simplexml_load_file($report)->xpath('//testcase');
        unlink($report);

        self::assertGreaterThan(140, \count($cases), implode("\n", $output));
        $failed = [];
        foreach ($cases as $case) {
            if (isset($case->failure) || isset($case->error)) {
                $failed[] = (string) $case['classname'];
            }
        }
        self::assertSame(self::OF_HTTP2_ONLY, $failed, implode("\n", $output));
    }
}
