<?php

declare(strict_types=1);

namespace Weft\Tests\Documentation;

use PHPUnit\Framework\Assert;
use Weft\Bench\Port;
use Weft\Tests\Extension;
use Weft\Tests\Timing;

require_once __DIR__ . '/../../bench/autoload.php';

/**
 * A directory in which the blocks of pages are run. It looks like a project that has required Weft with Composer, and `php` and `weft` have the
 * extension. Addresses of pages are replaced by those of this machine, in files and commands, and back in what programs print.
 */
final class Workspace
{
    /** The directory of the project, as pages say it. */
    private const DIRECTORY = '/srv/app';
    private const LIBRARIES = [
        'guzzle' => ['GuzzleHttp'],
        'doctrine' => ['Doctrine/DBAL', 'Doctrine/ORM'],
        'eloquent' => ['Illuminate/Database', 'Illuminate/Events'],
        'messenger' => ['Symfony/Component/Messenger', 'Symfony/Component/Messenger/Bridge/Amqp', 'Symfony/Component/Serializer', 'Symfony/Component/PropertyAccess'],
        'monolog' => ['Monolog'],
        'predis' => ['Predis'],
        'symfony' => ['Symfony/Component/HttpKernel', 'Symfony/Component/HttpFoundation', 'Symfony/Component/EventDispatcher', 'Symfony/Component/Routing'],
        'psr7' => ['Nyholm/Psr7'],
        'framework-bundle' => ['Symfony/Bundle/FrameworkBundle', 'Symfony/Component/Runtime'],
        'laravel' => ['Illuminate'],
    ];
    /** Extensions of PHP that a library needs. */
    private const EXTENSIONS = ['messenger' => ['amqp']];
    /** A page with this need begins with an empty directory, and has a checkout of Weft in `~/weft`. */
    private const CHECKOUT = 'checkout';
    /** Where the runtimes of frameworks listen if nothing else is said. */
    private const FRAMEWORKS_PORT = ':8000';
    /** Programs that pages call by their path. */
    private const PROGRAMS = ['nginx' => '/usr/sbin/nginx', 'python-websockets' => '/usr/lib/python3/dist-packages/websockets/__init__.py'];

    public readonly string $directory;
    private readonly Services $services;
    private readonly bool $hasCheckout;
    /** @var array<string, string> what a page says => what it is here */
    private array $addresses;
    /** @var list<BackgroundServer> */
    private array $servers = [];

    /** @param list<string> $needs servers, libraries and programs beside Weft */
    public function __construct(array $needs)
    {
        $this->services = new Services($needs);
        $this->directory = \sys_get_temp_dir() . '/weft-docs-' . \bin2hex(\random_bytes(6));
        $this->addresses = [self::DIRECTORY => $this->directory] + $this->services->addresses;
        $this->makeTools();
        $this->hasCheckout = \in_array(self::CHECKOUT, $needs, true);
        if ($this->hasCheckout) {
            \mkdir("{$this->directory}/.tools/home");
            \symlink(\dirname(__DIR__, 2), "{$this->directory}/.tools/home/weft");
        } else {
            $this->makeProject(\array_merge(...\array_map(static fn(string $need): array => self::LIBRARIES[$need] ?? [], $needs)));
        }
    }

    /**
     * @param list<string> $needs
     *
     * @return string|null what this machine lacks
     */
    public static function missing(array $needs): ?string
    {
        foreach ($needs as $need) {
            $files = [...\array_map(static fn(string $library): string => "/usr/share/php/$library/autoload.php", self::LIBRARIES[$need] ?? []), ...(array) (self::PROGRAMS[$need] ?? [])];
            foreach ($files as $file) {
                if (!\is_file($file)) {
                    return "$file is missing: scripts/setup test";
                }
            }
            foreach (self::EXTENSIONS[$need] ?? [] as $extension) {
                if (!\extension_loaded($extension)) {
                    return "PHP's extension $extension is not installed";
                }
            }
        }
        if (\PHP_VERSION_ID >= 80600 && \in_array('laravel', $needs, true) && !\str_contains((string) \file_get_contents('/usr/share/php/Illuminate/Session/FileSessionHandler.php'), 'create_sid')) {
            return 'Laravel of this release fails with the warning that PHP 8.6 has for its session handlers';
        }

        return null;
    }

    /** Deletes everything, and ends the programs that a page has started itself. */
    public function close(): void
    {
        foreach ($this->servers as $server) {
            $server->kill();
        }
        foreach (\glob("{$this->directory}/*.pid") ?: [] as $file) {
            $pid = (int) \file_get_contents($file);
            $pid > 1 && @\posix_kill($pid, \SIGTERM);
        }
        \exec('rm -rf ' . \escapeshellarg($this->directory));
        $this->services->close();
    }

    /** Each port of a page is a free one here. */
    public function findPorts(Page $page): void
    {
        \preg_match_all('/(?:127\.0\.0\.1|0\.0\.0\.0|localhost|\[::1?\])(:\d{4,5})\b/', (string) \file_get_contents($page->file), $found);
        foreach (\array_unique($found[1]) as $port) {
            if (!isset($this->addresses["localhost$port"])) {
                $this->addresses[$port] ??= ':' . Port::free();
            }
        }
    }

    /** Writes a file of a page. */
    public function file(string $name, string $contents): void
    {
        $this->put($name, \strtr($contents, $this->addresses));
    }

    /** @return array{int, string} exit code, and what the commands printed as the page would have it */
    public function shell(string $commands): array
    {
        $process = \proc_open(
            ['timeout', '--kill-after=5', (string) (int) (5 * Timing::DEADLINE), 'bash', '-eu', '-o', 'pipefail', '-c', \strtr($commands, $this->addresses)],
            [['file', '/dev/null', 'r'], ['file', "{$this->directory}/.tools/output", 'w'], ['redirect', 1]],
            $pipes,
            $this->directory,
            $this->environment(),
        );
        Assert::assertIsResource($process);
        $exit = \proc_close($process);

        return [$exit, $this->asWritten((string) \file_get_contents("{$this->directory}/.tools/output"))];
    }

    public function serve(string $command): BackgroundServer
    {
        $log = "{$this->directory}/.tools/server-" . (\count($this->servers) + 1) . '.log';

        return $this->servers[] = BackgroundServer::start(\strtr(\trim($command), $this->addresses), $this->directory, $this->environment(), $log);
    }

    /** What a program has printed, as the page would have it. */
    public function asWritten(string $output): string
    {
        $lines = \array_map(rtrim(...), \explode("\n", \strtr($output, \array_flip($this->addresses))));

        return \rtrim(\implode("\n", $lines));
    }

    public function assertParses(string $language, string $code, string $place): void
    {
        $this->put(".tools/parsed.$language", $language === 'php' && !\str_starts_with($code, '<?php') ? "<?php\n$code" : $code);
        [$exit, $output] = $this->shell(match ($language) {
            'php' => 'php -l .tools/parsed.php | grep -v "^No syntax errors" || true',
            'go' => '! command -v gofmt > /dev/null || gofmt -e -l .tools/parsed.go',
        });
        Assert::assertTrue($exit === 0 && $output === '', "$place: $output");
    }

    /** @param list<string> $libraries directories of Debian's packages, where Composer would have installed them */
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
        // PHPUnit 13 deprecates the option, and shows that in its summary.
        $cache = \version_compare(\PHPUnit\Runner\Version::id(), '13', '<') ? ' --do-not-cache-result' : '';
        $this->put('vendor/bin/phpunit', "#!/bin/sh\nexec php " . \escapeshellarg($phpunit) . " --bootstrap vendor/autoload.php$cache \"\$@\"\n");
        \symlink("{$this->directory}/vendor/bin/weft", "{$this->directory}/.tools/weft");
    }

    /** The machine of the reader: PHP with the extension, and a curl that is quiet where its output is no terminal. */
    private function makeTools(): void
    {
        $this->put('.tools/php', "#!/bin/sh\nexec " . \escapeshellarg(\PHP_BINARY) . " \"\$@\"\n");
        $this->put('.tools/ini/weft.ini', 'extension=' . Extension::library() . "\ndisplay_errors=stderr\nlog_errors=0\n");
        $this->put('.tools/.curlrc', "silent\nmax-time = 60\n");
        // Debian's, which has the libraries that scripts/setup installs.
        \symlink('/usr/bin/python3', "{$this->directory}/.tools/python3");
    }

    private function put(string $name, string $contents): void
    {
        $path = "{$this->directory}/$name";
        \is_dir(\dirname($path)) || \mkdir(\dirname($path), recursive: true);
        \file_put_contents($path, $contents);
        \str_starts_with($contents, '#!') && \chmod($path, 0o755);
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
            'PATH' => "{$this->directory}/.tools:" . \getenv('PATH'),
            'PHP_INI_SCAN_DIR' => ":{$this->directory}/.tools/ini",
            'CURL_HOME' => "{$this->directory}/.tools",
            'NO_COLOR' => '1',
        ] + ($this->hasCheckout ? [
            'HOME' => "{$this->directory}/.tools/home",
            'WEFT_LISTEN' => '127.0.0.1' . ($this->addresses[self::FRAMEWORKS_PORT] ?? self::FRAMEWORKS_PORT),
        ] : []) + $environment;
    }
}
