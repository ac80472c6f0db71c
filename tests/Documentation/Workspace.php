<?php

declare(strict_types=1);

namespace Weft\Tests\Documentation;

use PHPUnit\Framework\Assert;
use Weft\Bench\Port;
use Weft\Tests\Bus\Fixtures\VirtualHost;
use Weft\Tests\Cli\Weft;
use Weft\Tests\Hooks\Support\Redis;
use Weft\Tests\Sql\Support\EmptyDatabase;
use Weft\Tests\Timing;

require_once __DIR__ . '/../../bench/autoload.php';

/**
 * A folder in which the blocks of pages are run. It looks like a project that has required Weft with Composer, and `php` and `weft` have the
 * extension. Addresses of pages are replaced by those of this machine, in files and commands, and back in what programs print.
 */
final class Workspace
{
    /** What pages say, the folder of the project among it. */
    private const FOLDER = '/srv/app';
    private const POSTGRES = ['postgres://app:secret@localhost/app', 'pgsql:host=localhost;dbname=app;user=app;password=secret'];
    private const MARIADB = ['mysql://app:secret@localhost/app'];
    private const RABBITMQ = ['amqp://localhost'];
    private const REDIS = 'localhost:6379';
    private const LIBRARIES = [
        'guzzle' => ['GuzzleHttp'],
        'doctrine' => ['Doctrine/DBAL', 'Doctrine/ORM'],
        'eloquent' => ['Illuminate/Database', 'Illuminate/Events'],
        'messenger' => ['Symfony/Component/Messenger', 'Symfony/Component/Serializer', 'Symfony/Component/PropertyAccess'],
        'monolog' => ['Monolog'],
        'predis' => ['Predis'],
        'symfony' => ['Symfony/Component/HttpKernel', 'Symfony/Component/HttpFoundation', 'Symfony/Component/EventDispatcher', 'Symfony/Component/Routing'],
        'psr7' => ['Nyholm/Psr7'],
        'amqplib' => ['PhpAmqpLib'],
    ];

    private readonly string $folder;
    /** @var array<string, string> what a page says => what it is here */
    private array $addresses = [];
    private readonly ?EmptyDatabase $postgres;
    private readonly ?EmptyDatabase $mariadb;
    private readonly ?VirtualHost $virtualHost;
    private readonly ?Redis $redis;
    /** @var resource|null */
    private $server;
    private string $serverName = '';
    private int $servers = 0;

    /** @param list<string> $needs servers and libraries beside Weft */
    public function __construct(array $needs)
    {
        $this->folder = \sys_get_temp_dir() . '/weft-docs-' . \bin2hex(\random_bytes(6));
        \mkdir("{$this->folder}/.tools/ini", recursive: true);
        \mkdir("{$this->folder}/vendor/bin", recursive: true);
        $this->addresses[self::FOLDER] = $this->folder;
        $this->postgres = \in_array('postgres', $needs, true) ? new EmptyDatabase('postgres') : null;
        $this->mariadb = \in_array('mariadb', $needs, true) ? new EmptyDatabase('mariadb') : null;
        $this->virtualHost = \in_array('rabbitmq', $needs, true) ? VirtualHost::create(self::variable('RABBITMQ_MANAGEMENT_URL')) : null;
        $this->redis = \in_array('redis', $needs, true) ? (Redis::start() ?? throw new \RuntimeException('redis-server is not installed')) : null;
        $this->nameServers();
        $this->makeProject(\array_merge(...\array_map(static fn(string $need): array => self::LIBRARIES[$need] ?? [], $needs)));
    }

    /** Makes the files of a chapter before the one that is run. */
    public function prepare(Page $page): void
    {
        $this->findPorts($page);
        foreach ($page->blocks as $block) {
            if ($block->title !== '' && $block->directive !== 'skip') {
                $this->file($block->title, $block->code);
            } elseif ($block->directive === 'setup') {
                $this->check($block, null, self::place($page, $block));
            }
        }
    }

    /** Runs the blocks of a page in their order. */
    public function run(Page $page): void
    {
        $this->findPorts($page);
        foreach ($page->blocks as $index => $block) {
            $place = self::place($page, $block);
            $next = $page->blocks[$index + 1] ?? null;
            $prints = $next?->language === 'text' && $next->directive === '' && $next->title === '' ? $next->code : null;
            if ($block->directive === 'skip') {
                Assert::assertNotSame('', $block->argument, "$place: say why the block is not run");
                $block->language === 'php' && $this->parse($block->code, $place);
            } elseif ($block->title !== '') {
                $this->file($block->title, $block->code);
                \str_ends_with($block->title, '.php') && $this->parse($block->code, $place);
            } elseif ($block->language === 'php') {
                Assert::assertStringNotContainsString('Weft\\', $block->code, "$place: code for Weft has a title and is run");
                $this->parse($block->code, $place);
            } elseif ($block->language === 'go') {
                $this->put('.tools/parsed.go', $block->code);
                [$exit, $output] = $this->shell('! command -v gofmt > /dev/null || gofmt -e -l .tools/parsed.go');
                Assert::assertSame([0, ''], [$exit, $output], $place);
            } elseif ($block->language === 'sh') {
                $block->directive === 'server' ? $this->serve($block, $place) : $this->check($block, $prints, $place);
            } elseif ($block->language === 'text') {
                $previous = $page->blocks[$index - 1] ?? null;
                match (true) {
                    $block->directive === 'log' => $this->log($block, $place),
                    $previous?->language === 'sh' && $previous->directive !== 'server' => null,
                    default => Assert::fail("$place: no command prints this; mark it with log or skip"),
                };
            }
        }
        $this->stopServer($page->file);
    }

    /** Stops what still runs and deletes everything. */
    public function close(): void
    {
        if ($this->server !== null) {
            $this->end(\SIGKILL);
        }
        // Programs that a page has started itself.
        foreach (\glob("{$this->folder}/*.pid") ?: [] as $file) {
            $pid = (int) \file_get_contents($file);
            $pid > 1 && @\posix_kill($pid, \SIGTERM);
        }
        \exec('rm -rf ' . \escapeshellarg($this->folder));
        $this->postgres?->drop();
        $this->mariadb?->drop();
        $this->virtualHost?->delete();
    }

    private static function place(Page $page, Block $block): string
    {
        return \basename($page->file) . ":{$block->line}";
    }

    private function nameServers(): void
    {
        foreach (self::POSTGRES as $written) {
            if ($this->postgres !== null) {
                $this->addresses[$written] = \str_starts_with($written, 'pgsql:') ? self::pdo($this->postgres->dsn()) : $this->postgres->dsn();
            }
        }
        foreach (self::MARIADB as $written) {
            $this->mariadb === null || $this->addresses[$written] = $this->mariadb->dsn();
        }
        foreach (self::RABBITMQ as $written) {
            $this->virtualHost === null || $this->addresses[$written] = $this->virtualHost->in(self::variable('AMQP_URL'));
        }
        $this->redis === null || $this->addresses[self::REDIS] = "127.0.0.1:{$this->redis->port}";
    }

    private static function pdo(string $dsn): string
    {
        $url = \parse_url($dsn);
        \parse_str($url['query'] ?? '', $query);

        return "pgsql:host={$url['host']};port={$url['port']};dbname=" . \substr($url['path'] ?? '', 1) . ";user={$url['user']};password={$url['pass']};options={$query['options']}";
    }

    /** Each port of a page is a free one here. */
    private function findPorts(Page $page): void
    {
        \preg_match_all('/(?:127\.0\.0\.1|0\.0\.0\.0|localhost|\[::1?\])(:\d{4,5})\b/', (string) \file_get_contents($page->file), $found);
        foreach (\array_unique($found[1]) as $port) {
            if ($port !== ':6379') {
                $this->addresses[$port] ??= ':' . Port::free();
            }
        }
    }

    /** @param list<string> $libraries folders of Debian's packages, where Composer would have installed them */
    private function makeProject(array $libraries): void
    {
        $root = \dirname(__DIR__, 2);
        $this->put('vendor/autoload.php', "<?php\n\nrequire_once " . \var_export("$root/autoload.php", true) . ";\n" . \implode('', \array_map(
            static fn(string $library): string => "require_once '/usr/share/php/$library/autoload.php';\n",
            $libraries,
        )) . <<<'PHP'
            spl_autoload_register(static function (string $class): void {
                $file = __DIR__ . '/../src/' . strtr(substr($class, 4), '\\', '/') . '.php';
                if (str_starts_with($class, 'App\\') && is_file($file)) {
                    require $file;
                } elseif (str_starts_with($class, 'PHPUnit\\') && is_file('/usr/share/php/PHPUnit/Autoload.php')) {
                    require_once '/usr/share/php/PHPUnit/Autoload.php';
                }
            });
            PHP);
        $this->put('vendor/bin/weft', "#!/usr/bin/env php\n<?php\n\n\$_composer_autoload_path = __DIR__ . '/../autoload.php';\ninclude " . \var_export("$root/bin/weft", true) . ';');
        $phpunit = \is_file("$root/vendor/bin/phpunit") ? "$root/vendor/bin/phpunit" : \trim((string) \shell_exec('command -v phpunit'));
        $this->put('vendor/bin/phpunit', "#!/bin/sh\nexec php " . \escapeshellarg($phpunit) . " --bootstrap vendor/autoload.php --do-not-cache-result \"\$@\"\n");
        $this->put('.tools/php', "#!/bin/sh\nexec " . \escapeshellarg(\PHP_BINARY) . " \"\$@\"\n");
        $this->put('.tools/ini/weft.ini', 'extension=' . Weft::library() . "\ndisplay_errors=stderr\nlog_errors=0\n");
        $this->put('.tools/.curlrc', "silent\nshow-error\nmax-time = 60\n");
        // Debian's, which has the libraries that scripts/setup installs.
        \symlink('/usr/bin/python3', "{$this->folder}/.tools/python3");
        \symlink("{$this->folder}/vendor/bin/weft", "{$this->folder}/.tools/weft");
    }

    private function put(string $name, string $contents): void
    {
        $path = "{$this->folder}/$name";
        \is_dir(\dirname($path)) || \mkdir(\dirname($path), recursive: true);
        \file_put_contents($path, $contents);
        \str_starts_with($contents, '#!') && \chmod($path, 0o755);
    }

    private function file(string $name, string $contents): void
    {
        $this->put($name, \strtr($contents, $this->addresses));
    }

    private function parse(string $code, string $place): void
    {
        $this->put('.tools/parsed.php', \str_starts_with($code, '<?php') ? $code : "<?php\n$code");
        [$exit, $output] = $this->shell('php -l .tools/parsed.php');
        Assert::assertSame(0, $exit, "$place: $output");
    }

    private function check(Block $block, ?string $prints, string $place): void
    {
        $pattern = $prints === null ? null : self::pattern($prints);
        $deadline = \hrtime(true) / 1e9 + Timing::DEADLINE;
        do {
            [$exit, $output] = $this->shell($block->code);
            $holds = $exit === 0 && ($pattern === null || \preg_match($pattern, $output) === 1);
        } while (!$holds && $block->directive === 'until' && \hrtime(true) / 1e9 < $deadline && \usleep(50_000) === null);
        Assert::assertTrue($holds, "$place: exit code $exit\n--- the page says\n$prints\n--- it printed\n$output\n--- the server's log\n{$this->serverLog()}");
    }

    private function log(Block $block, string $place): void
    {
        $pattern = '/' . \implode('.*', \array_map(self::expression(...), \explode("\n", \rtrim($block->code)))) . '/s';
        $holds = $this->await(fn(): bool => \preg_match($pattern, $this->serverLog()) === 1);
        Assert::assertTrue($holds, "$place: the server has not logged this\n{$block->code}\n--- but\n{$this->serverLog()}");
    }

    private static function pattern(string $text): string
    {
        return '/^' . \implode('\n', \array_map(self::expression(...), \explode("\n", \rtrim($text)))) . '$/s';
    }

    private static function expression(string $line): string
    {
        return \strtr(\preg_quote(\rtrim($line), '/'), ['…' => '.*?']);
    }

    /** @return array{int, string} exit code, and what it printed as the page would have it */
    private function shell(string $commands): array
    {
        $process = \proc_open(
            ['timeout', '--kill-after=5', (string) (int) (2 * Timing::DEADLINE), 'bash', '-eu', '-o', 'pipefail', '-c', \strtr($commands, $this->addresses)],
            [['file', '/dev/null', 'r'], ['file', "{$this->folder}/.tools/output", 'w'], ['redirect', 1]],
            $pipes,
            $this->folder,
            $this->environment(),
        );
        Assert::assertIsResource($process);
        $exit = \proc_close($process);

        return [$exit, $this->asWritten((string) \file_get_contents("{$this->folder}/.tools/output"))];
    }

    private function asWritten(string $output): string
    {
        $lines = \array_map(rtrim(...), \explode("\n", \strtr($output, \array_flip($this->addresses))));

        return \rtrim(\implode("\n", $lines));
    }

    private function serve(Block $block, string $place): void
    {
        $this->stopServer($place);
        $this->serverName = "$place " . \trim($block->code);
        $this->servers++;
        $log = $this->serverFile();
        $process = \proc_open(
            ['setsid', 'bash', '-eu', '-c', 'exec env ' . \strtr(\trim($block->code), $this->addresses)],
            [['file', '/dev/null', 'r'], ['file', $log, 'w'], ['file', $log, 'a']],
            $pipes,
            $this->folder,
            $this->environment(),
        );
        Assert::assertIsResource($process);
        $this->server = $process;
        $ready = '/' . self::expression($block->argument === '' ? 'listening on' : $block->argument) . '/';
        $this->await(fn(): bool => \preg_match($ready, $this->serverLog()) === 1 || !\proc_get_status($process)['running']);
        Assert::assertMatchesRegularExpression($ready, $this->serverLog(), "{$this->serverName} is not ready");
    }

    /** @param \Closure(): bool $condition */
    private function await(\Closure $condition): bool
    {
        $deadline = \hrtime(true) / 1e9 + Timing::DEADLINE;
        while (!($holds = $condition()) && \hrtime(true) / 1e9 < $deadline) {
            \usleep(20_000);
        }

        return $holds;
    }

    /** As Ctrl-C does. */
    private function stopServer(string $place): void
    {
        if ($this->server !== null) {
            $log = $this->serverLog();
            Assert::assertSame(0, $this->end(\SIGINT), "$place: {$this->serverName}\n$log\n---\n{$this->serverLog()}");
        }
    }

    /** @return int the exit code */
    private function end(int $signal): int
    {
        $server = $this->server;
        $this->server = null;
        $status = \proc_get_status($server);
        $deadline = \hrtime(true) / 1e9 + Timing::DEADLINE;
        $status['running'] && \posix_kill($status['pid'], $signal);
        while ($status['running'] && \hrtime(true) / 1e9 < $deadline) {
            \usleep(5_000);
            $status = \proc_get_status($server);
        }
        // Whatever is left of its group.
        @\posix_kill(-$status['pid'], \SIGKILL);
        \proc_close($server);

        return $status['running'] ? -1 : $status['exitcode'];
    }

    private function serverFile(): string
    {
        return "{$this->folder}/.tools/server-{$this->servers}.log";
    }

    private function serverLog(): string
    {
        return $this->servers === 0 ? '' : $this->asWritten((string) \file_get_contents($this->serverFile()));
    }

    /** @return array<string, string> without what would point programs at the servers of the tests */
    private function environment(): array
    {
        $environment = \array_filter(
            \getenv(),
            static fn(string $name): bool => \preg_match('/^(WEFT|AMQP|RABBITMQ|POSTGRES|PG|DATABASE|BROKER|MYSQL|MARIADB)/', $name) !== 1,
            \ARRAY_FILTER_USE_KEY,
        );

        return [
            'PATH' => "{$this->folder}/.tools:" . \getenv('PATH'),
            'PHP_INI_SCAN_DIR' => ":{$this->folder}/.tools/ini",
            'CURL_HOME' => "{$this->folder}/.tools",
            'NO_COLOR' => '1',
        ] + $environment;
    }

    private static function variable(string $name): string
    {
        return \getenv($name) ?: throw new \RuntimeException("$name is not set: run `make services`");
    }
}
