<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Tests\Chromium;

/** What a real browser makes of events, WebSockets, compression and files. */
final class BrowserTest extends HttpTestCase
{
    private const DEADLINE = 180.0;
    private const ROUTES = <<<'PHP'
        $routes->use(new Compression(minBytes: 0));
        $routes->get("/", static fn() => Response::html(PAGE))
            ->static("/assets", DIRECTORY)
            ->post("/result", static function (Request $r) { fwrite(STDERR, "result " . base64_encode($r->body()) . "\n"); return Response::noContent(); })
            ->get("/protocol", static fn(Request $r) => Response::text($r->protocol() . " " . (str_contains($r->header("accept-encoding") ?? "", "zstd") ? "zstd" : "no zstd")))
            ->get("/events", static fn(Request $r) => Response::events(static function () use ($r) {
                if ($r->header("last-event-id") === null) {
                    yield new ServerSentEvent("ä\nb", id: "1", retry: 0.1);
                    delay(0.5);
                    yield "second";
                    return;
                }
                yield new ServerSentEvent("after {$r->header("last-event-id")}", "news", "2");
                delay(30);
            }, heartbeat: 0.1))
            ->post("/upload", static fn(Request $r) => Response::json([$r->form(), array_map(static fn($u) => [$u->field, $u->name, $u->type, $u->contents()], $r->uploads())]))
            ->websocket("/socket", static function (WebSocket $socket, Request $r) {
                fwrite(STDERR, "socket over {$r->protocol()}\n");
                foreach ($socket as $message) {
                    $message->isBinary ? $socket->sendBinary($message->data) : $socket->send($message->data);
                }
            }, new WebSocketOptions(messageBytes: 2_000_000, compress: true));
        PHP;
    private const PAGE = <<<'HTML'
        <!doctype html><meta charset="utf-8"><title>test</title><script type="module">
        const events = () => new Promise(resolve => {
            const seen = [], source = new EventSource('/events');
            source.onmessage = e => seen.push([e.data, e.lastEventId]);
            source.onerror = () => seen.push(['again', source.readyState]);
            source.addEventListener('news', e => { seen.push([e.type, e.data, e.lastEventId]); source.close(); resolve(seen); });
        });
        const socket = () => new Promise(resolve => {
            const seen = [], ws = new WebSocket(location.origin.replace('http', 'ws') + '/socket');
            ws.binaryType = 'arraybuffer';
            const sent = ['grün 😀', '', 'x'.repeat(1000000), new Uint8Array([0, 255, 1]), new Uint8Array(300000).fill(7)];
            ws.onopen = () => ws.send(sent[0]);
            ws.onmessage = e => {
                const expected = sent[seen.length], bytes = d => Array.from(new Uint8Array(d)).join();
                seen.push(typeof expected === 'string' ? e.data === expected : bytes(e.data) === bytes(expected.buffer));
                seen.length < sent.length ? ws.send(sent[seen.length]) : ws.close(4000, 'done');
            };
            ws.onclose = e => resolve([...seen, e.code, e.reason, e.wasClean, ws.extensions.split(';')[0]]);
        });
        const upload = async () => {
            const form = new FormData();
            form.append('title', 'Käse "x"');
            form.append('file', new File(['contents'], 'a "quoted" ä.txt', {type: 'text/plain'}));
            return (await fetch('/upload', {method: 'POST', body: form})).json();
        };
        const file = async () => {
            const text = await (await fetch('/assets/a.txt')).text();
            const part = await fetch('/assets/a.txt', {headers: {range: 'bytes=1-2'}});
            return [text, part.status, await part.text()];
        };
        const result = {};
        for (const [name, run] of Object.entries({
            events, socket, upload, file, protocol: async () => (await fetch('/protocol')).text(),
        })) {
            try { result[name] = await run(); } catch (error) { result[name] = String(error); }
        }
        await fetch('/result', {method: 'POST', body: JSON.stringify(result)});
        </script>
        HTML;

    /** @dataProvider protocols */
    #[DataProvider('protocols')]
    public function testABrowserUnderstandsEverything(bool $isSecured, string $protocol): void
    {
        $browser = Chromium::program();
        $directory = new Directory();
        $directory->write('a.txt', 'abc');
        $certificates = new Certificates();
        $certificates->issue('a', 'localhost');
        $routes = strtr(self::ROUTES, ['PAGE' => var_export(self::PAGE, true), 'DIRECTORY' => var_export($directory->path, true)]);
        $server = $this->serve($routes, $isSecured ? ", tls: new Tls({$certificates->php('a')})" : '');
        $url = ($isSecured ? 'https' : 'http') . "://$server->address/";

        try {
            $result = self::visit($browser, $url, $server, $directory);
        } finally {
            $directory->remove();
            $certificates->remove();
        }

        self::assertSame([["ä\nb", '1'], ['second', '1'], ['again', 0], ['news', 'after 1', '2']], $result['events']);
        self::assertSame([true, true, true, true, true, 4000, 'done', true, 'permessage-deflate'], $result['socket']);
        self::assertStringContainsString("socket over $protocol\n", $server->log());
        self::assertSame([['title' => 'Käse "x"'], [['file', 'a %22quoted%22 ä.txt', 'text/plain', 'contents']]], $result['upload']);
        self::assertSame(['abc', 206, 'bc'], $result['file']);
        self::assertStringStartsWith($protocol, $result['protocol']);
    }

    /** @return iterable<string, array{bool, string}> */
    public static function protocols(): iterable
    {
        yield 'HTTP/1.1' => [false, '1.1'];
        yield 'HTTP/2 over TLS' => [true, '2'];
    }

    /** @return array<string, mixed> what the page has found out */
    private static function visit(string $browser, string $url, ServerProcess $server, Directory $directory): array
    {
        $options = ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run', '--ignore-certificate-errors', '--remote-debugging-port=0', "--user-data-dir=$directory->path/profile"];
        // A session of its own, so that all its processes can be ended.
        $process = proc_open(['setsid', '-w', $browser, ...$options, $url], [1 => ['file', '/dev/null', 'w'], 2 => ['file', "$directory->path/browser.log", 'w']], $pipes, null, ['TMPDIR' => $directory->path] + getenv());
        try {
            $deadline = microtime(true) + self::DEADLINE;
            while (preg_match('/^result (\S+)$/m', $server->log(), $found) !== 1) {
                if (microtime(true) > $deadline) {
                    self::fail("The browser has sent nothing.\n{$server->log()}\n" . file_get_contents("$directory->path/browser.log"));
                }
                usleep(20_000);
            }
        } finally {
            self::end($process, $directory->path);
        }

        return json_decode((string) base64_decode($found[1], true), true, flags: \JSON_THROW_ON_ERROR);
    }

    /**
     * Ends the browser's whole session and waits until it is gone: a process that still dies writes its profile.
     *
     * @param resource $process
     */
    private static function end($process, string $directory): void
    {
        // setsid starts a child only if it leads a group itself; otherwise it becomes the browser.
        $pid = proc_get_status($process)['pid'];
        $sessions = [(string) $pid, ...explode(' ', trim((string) @file_get_contents("/proc/$pid/task/$pid/children")))];
        $deadline = microtime(true) + self::DEADLINE;
        while (($pids = self::processes($sessions, $directory)) !== []) {
            if (microtime(true) > $deadline) {
                self::fail('Processes of the browser outlive SIGKILL: ' . implode(', ', $pids));
            }
            foreach ($pids as $pid) {
                posix_kill($pid, 9);
            }
            usleep(10_000);
        }
        proc_terminate($process, 9);
        proc_close($process);
    }

    /**
     * The browser's processes: those of its session, and those that name the test's directory.
     *
     * @param list<string> $sessions
     * @return list<int>
     */
    private static function processes(array $sessions, string $directory): array
    {
        $pids = [];
        foreach (glob('/proc/[0-9]*') ?: [] as $path) {
            $pid = (int) basename($path);
            // The fields after the command's name: state, parent, group, session.
            $status = explode(' ', (string) preg_replace('/^.*\) /s', '', (string) @file_get_contents("$path/stat")));
            $isOurs = \in_array($status[3] ?? '', $sessions, true) || str_contains((string) @file_get_contents("$path/cmdline"), $directory);
            if ($isOurs && $status[0] !== 'Z') {
                $pids[] = $pid;
            }
        }

        return $pids;
    }
}
