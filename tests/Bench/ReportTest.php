<?php

declare(strict_types=1);

namespace Weft\Tests\Bench;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Bench\Report\HtmlPage;
use Weft\Bench\Report\Sources;
use Weft\Bench\Report\Summary;
use Weft\Tests\Bench\Fixtures\Results;
use Weft\Tests\Chromium;
use Weft\Tests\Timing;

require_once __DIR__ . '/../../bench/autoload.php';
require_once __DIR__ . '/Fixtures/Results.php';

/** The page of all results, in a browser. */
final class ReportTest extends TestCase
{
    private const PHONE = 360;
    private const DESKTOP = 1280;

    /** What a run that failed has. */
    private const IDENTITY = [
        'system', 'mode', 'transport', 'persistent', 'confirms', 'case', 'protocol', 'connections', 'preset', 'tool', 'call', 'concurrency', 'pool',
        'ceiling_rps', 'published_rps', 'published_error_percent', 'curve', 'series', 'x', 'x_label', 'y_label',
    ];

    private static string $directory;
    private static Chromium $browser;

    /** Here and not before the class: PHPUnit 13 writes nothing of tests that are skipped there. */
    protected function setUp(): void
    {
        if (isset(self::$browser)) {
            return;
        }
        self::$browser = new Chromium();
        self::$directory = sys_get_temp_dir() . '/weft-report-' . bin2hex(random_bytes(4));
        mkdir(self::$directory);
        Results::write(self::$directory);
        $page = new HtmlPage(dirname(__DIR__, 2));
        $page->write(Sources::directory(self::$directory), self::$directory . '/all.html');
        $page->write(Sources::published(dirname(__DIR__, 2)), self::$directory . '/published.html');
    }

    public static function tearDownAfterClass(): void
    {
        // Not begun where no browser is installed.
        if (!isset(self::$browser)) {
            return;
        }
        self::$browser->close();
        exec('rm -rf ' . escapeshellarg(self::$directory));
    }

    /** @dataProvider pages */
    #[DataProvider('pages')]
    public function testItOpensWithoutTheNetworkAndWithoutAComplaint(string $page): void
    {
        $this->open($page, self::DESKTOP, 'light');

        self::assertSame([], $this->requests());
        self::assertSame([], $this->complaints());
        self::assertGreaterThan(5, self::$browser->evaluate('document.querySelectorAll("figure svg[role=img]").length'));
    }

    public static function pages(): iterable
    {
        yield 'of every kind of result there is' => ['all.html'];
        yield 'of what is published' => ['published.html'];
    }

    public function testEveryBenchmarkHasATileThatLeadsToItsSection(): void
    {
        $this->open('all.html', self::DESKTOP, 'light');

        $tiles = self::$browser->evaluate('Object.fromEntries([...document.querySelectorAll("[data-benchmark]")].map((tile) => '
            . '[tile.dataset.benchmark, tile.querySelector(".value").textContent]))');
        self::assertSame(['bus' => '2.00×', 'http' => '1.25×', 'grpc' => '1.50×', 'pool' => '10.0×', 'rinha' => '6 ms'], $tiles);
        self::assertSame(array_keys(Summary::TITLES), array_keys($tiles));
        $missing = '[...document.querySelectorAll("a[href^=\'#\']")].filter((link) => !document.getElementById(link.hash.slice(1))).length';
        self::assertSame(0, self::$browser->evaluate($missing));
    }

    public function testABenchmarkWithoutResultsSaysHowToGetThem(): void
    {
        unlink(self::$directory . '/grpc.json');
        (new HtmlPage(dirname(__DIR__, 2)))->write(Sources::directory(self::$directory), self::$directory . '/some.html');
        Results::write(self::$directory);
        $this->open('some.html', self::DESKTOP, 'light');

        self::assertStringContainsString('No results yet: make bench-grpc', self::$browser->evaluate('document.querySelector("[data-benchmark=grpc]").textContent'));
        self::assertSame([], $this->complaints());
    }

    public function testAContenderThatFailedIsNamedWithItsLog(): void
    {
        $this->open('all.html', self::DESKTOP, 'light');

        $failures = self::$browser->evaluate('document.querySelector("#http .failures").innerText');
        self::assertStringContainsString('1 of', $failures);
        self::assertStringContainsString('node, hello, http/1.1, 64 connections: no npm (log: bench/out/http-logs/node-1.log)', $failures);
    }

    public function testTheNumbersOfEveryChartAreInATableBesideIt(): void
    {
        $this->open('all.html', self::DESKTOP, 'light');

        $rows = self::$browser->evaluate('[...document.querySelectorAll("#bus table tbody th")].map((cell) => cell.textContent)');
        foreach (['weft plain', 'weft safe', 'weft embedded', 'weft postgres', 'go', 'pure-php', 'Go (published)'] as $name) {
            self::assertContains($name, $rows);
        }
        self::assertStringContainsString('4.00 (3.90–4.10)', self::$browser->evaluate('document.querySelector("#bus table").innerText'));
    }

    public function testTheGuaranteesOfEachContenderStandBesideItsTime(): void
    {
        $this->open('all.html', self::DESKTOP, 'light');

        $table = self::$browser->evaluate('[...document.querySelectorAll("#bus table")].find((table) => table.ariaLabel === "What each contender promises").innerText');
        self::assertStringContainsString("weft plain\ttransient, durable classic queue\toff\tan event can be out without its row", $table);
        self::assertStringContainsString("weft safe\ttransient, quorum queue\ton\tnothing", $table);
        self::assertStringContainsString("weft postgres\ton disk, in PostgreSQL\tthe commit is one\tnothing", $table);
        self::assertStringContainsString('go (transient, no confirms)', self::$browser->evaluate('document.querySelector("#bus figure").textContent'));
    }

    public function testResultsThatArePublishedByThemselvesHaveTheirPlaceAndOrigin(): void
    {
        $this->open('all.html', self::DESKTOP, 'light');

        $matrix = self::$browser->evaluate('[...document.querySelectorAll("#bus h3")].find((title) => title.textContent.startsWith("Persistent")).parentElement.innerText');
        self::assertStringContainsString('persistent, confirms on', $matrix);
        self::assertStringContainsString('Machine, versions and command', $matrix);
        $bounds = self::$browser->evaluate('[...document.querySelectorAll("#grpc h3")].find((title) => title.textContent.startsWith("The limits of one")).parentElement.innerText');
        self::assertStringContainsString("10,000 idle connections\t20.4 KiB each\tat most 20 KiB\tNO", $bounds);
        self::assertStringContainsString('commands in flight', self::$browser->evaluate('document.querySelector("#scale").innerText'));
    }

    public function testAPageWithoutOneFinishedRunSaysWhatFailed(): void
    {
        $directory = self::$directory . '/failed';
        mkdir($directory);
        Results::write($directory);
        array_map(unlink(...), ["$directory/rinha.json", "$directory/grpc-bounds.json", "$directory/bus-noop.json"]);
        foreach (glob("$directory/*.json") as $file) {
            $fields = json_decode((string) file_get_contents($file), true);
            $none = static fn (array $run): array => ['failed' => 'out of luck'] + array_intersect_key($run, array_flip(self::IDENTITY)) + array_map(static fn (): null => null, $run);
            file_put_contents($file, json_encode(['runs' => array_map($none, $fields['runs'])] + $fields));
        }
        (new HtmlPage(dirname(__DIR__, 2)))->write(Sources::directory($directory), self::$directory . '/failed.html');
        $this->open('failed.html', self::DESKTOP, 'light');

        self::assertSame([], $this->complaints());
        foreach (['bus', 'http', 'grpc', 'pool'] as $id) {
            self::assertStringContainsString('out of luck', self::$browser->evaluate("document.querySelector('#$id').innerText"), $id);
        }
    }

    public function testBoundsAloneHaveAPage(): void
    {
        $directory = self::$directory . '/alone';
        mkdir($directory);
        copy(self::$directory . '/grpc-bounds.json', "$directory/grpc-bounds.json");
        (new HtmlPage(dirname(__DIR__, 2)))->write(Sources::directory($directory), self::$directory . '/alone.html');
        $this->open('alone.html', self::DESKTOP, 'light');

        self::assertSame([], $this->complaints());
        self::assertStringContainsString('The limits of one server of Weft', self::$browser->evaluate('document.querySelector("#grpc").innerText'));
    }

    public function testABenchmarkWithoutChartsOfItsOwnIsATable(): void
    {
        $this->open('all.html', self::DESKTOP, 'light');

        self::assertSame("weft-client\tconsume\t98,765", self::$browser->evaluate('document.querySelector("#bus-noop tbody").innerText'));
        self::assertStringContainsString('1 of 2 runs failed', self::$browser->evaluate('document.querySelector("#bus-noop .failures").innerText'));
    }

    public function testAnotherLoadIsChosenWithTheKeyboard(): void
    {
        $this->open('all.html', self::DESKTOP, 'light');
        self::$browser->evaluate('document.querySelector("#http fieldset select").focus()');
        foreach (['keyDown', 'keyUp'] as $type) {
            self::$browser->ask('Input.dispatchKeyEvent', ['type' => $type, 'key' => 'ArrowDown', 'code' => 'ArrowDown', 'windowsVirtualKeyCode' => 40]);
        }

        $this->await('document.querySelector("#http").innerText.includes("Requests per second: query")');
        self::assertSame('query', self::$browser->evaluate('document.activeElement.value'));
    }

    /** @dataProvider views */
    #[DataProvider('views')]
    public function testItFitsItsScreenAndItsTextCanBeRead(int $width, string $scheme): void
    {
        $this->open('all.html', $width, $scheme);

        self::assertLessThanOrEqual($width, self::$browser->evaluate('document.documentElement.scrollWidth'), 'nothing makes the page wider than its screen');
        self::assertSame([], self::$browser->evaluate(self::TOO_FAINT), 'text on its background has a contrast of at least 4.5 to 1');
        $cut = '[...document.querySelectorAll("figure .chart svg[role=img]")].filter((svg) => svg.getBoundingClientRect().right > innerWidth).length';
        self::assertSame(0, self::$browser->evaluate($cut));
    }

    public static function views(): iterable
    {
        foreach ([self::PHONE, self::DESKTOP] as $width) {
            yield "$width pixels, light" => [$width, 'light'];
            yield "$width pixels, dark" => [$width, 'dark'];
        }
    }

    public function testBothWaysToInsertAreShown(): void
    {
        $this->open('all.html', self::DESKTOP, 'light');

        $stored = self::$browser->evaluate('document.querySelector("#rinha table").innerText');
        self::assertStringContainsString("weft, single inserts\t46,528\t46,528\t6", $stored);
        self::assertStringContainsString("weft, shared inserts\t46,528\t30,000\t5", $stored);
    }

    public function testTheRawResultsAreInside(): void
    {
        $this->open('all.html', self::DESKTOP, 'light');

        $raw = json_decode(self::$browser->evaluate('document.querySelector("footer pre").textContent'), true);
        self::assertEquals(json_decode((string) file_get_contents(self::$directory . '/bus.json'), true)['runs'], $raw['bus']['runs']);
    }

    /** Elements with text of their own whose contrast (WCAG 2.2, 1.4.3) is too low. */
    private const TOO_FAINT = <<<'JS'
        (() => {
            const parse = (color) => (color.match(/[\d.]+/g) ?? []).map(Number);
            const luminance = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
                .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
            const background = (node) => {
                for (; node; node = node.parentElement) {
                    const [r, g, b, a = 1] = parse(getComputedStyle(node).backgroundColor);
                    if (a > 0 && r !== undefined) return [r, g, b];
                }
                return [255, 255, 255];
            };
            const own = (node) => [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim() !== '');
            return [...document.querySelectorAll('body *')].filter((node) => own(node) && node.getClientRects().length > 0).map((node) => {
                const style = getComputedStyle(node);
                const text = luminance(parse(node instanceof SVGElement ? style.fill : style.color));
                const ground = luminance(background(node));
                const contrast = (Math.max(text, ground) + 0.05) / (Math.min(text, ground) + 0.05);
                return contrast < 4.5 ? `${node.tagName} ${node.textContent.slice(0, 40)}: ${contrast.toFixed(2)}` : null;
            }).filter((found) => found !== null);
        })()
        JS;

    private function open(string $page, int $width, string $scheme): void
    {
        self::$browser->events = [];
        self::$browser->ask('Network.enable');
        self::$browser->ask('Runtime.enable');
        self::$browser->ask('Log.enable');
        self::$browser->ask('Emulation.setDeviceMetricsOverride', ['width' => $width, 'height' => 800, 'deviceScaleFactor' => 1, 'mobile' => $width === self::PHONE]);
        self::$browser->ask('Emulation.setEmulatedMedia', ['features' => [['name' => 'prefers-color-scheme', 'value' => $scheme]]]);
        self::$browser->open('file://' . self::$directory . "/$page");
        $this->await('[...document.querySelectorAll(".chart")].every((chart) => chart.firstChild)');
    }

    private function await(string $condition): void
    {
        $deadline = microtime(true) + Timing::DEADLINE;
        while (self::$browser->evaluate($condition) !== true) {
            self::assertLessThan($deadline, microtime(true), "never true: $condition; " . implode("\n", $this->complaints()));
            usleep(20_000);
        }
    }

    /** @return list<string> addresses asked for, but for the page itself and what is inside it */
    private function requests(): array
    {
        $asked = array_filter(self::$browser->events, static fn (array $event): bool => ($event['method'] ?? '') === 'Network.requestWillBeSent');
        $addresses = array_map(static fn (array $event): string => $event['params']['request']['url'], $asked);

        return array_values(array_filter($addresses, static fn (string $url): bool => !preg_match('#^(file|data|blob|about):#', $url)));
    }

    /** @return list<string> exceptions, and what was written to the console */
    private function complaints(): array
    {
        $complaints = array_filter(self::$browser->events, static fn (array $event): bool => in_array(
            $event['method'] ?? '',
            ['Runtime.exceptionThrown', 'Runtime.consoleAPICalled', 'Log.entryAdded'],
            true,
        ));

        return array_values(array_map(static fn (array $event): string => json_encode($event['params']), $complaints));
    }
}
