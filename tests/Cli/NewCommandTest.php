<?php

declare(strict_types=1);

namespace Weft\Tests\Cli;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Bench\HttpAnswer;
use Weft\Bench\Port;
use Weft\Cli\Internal\ApplicationTemplate;
use Weft\Tests\Extension;
use Weft\Tests\Timing;
use Weft\Version;

require_once __DIR__ . '/../../bench/autoload.php';

/** `weft new`: what it writes runs at once. */
final class NewCommandTest extends TestCase
{
    private string $directory;

    protected function setUp(): void
    {
        $this->directory = \sys_get_temp_dir() . '/weft-new-' . \bin2hex(\random_bytes(6));
    }

    protected function tearDown(): void
    {
        \exec('rm -rf ' . \escapeshellarg($this->directory));
    }

    public function testTheApplicationServesAndItsHandlerRuns(): void
    {
        $written = Weft::run(['new', $this->directory]);
        self::assertSame([0, ''], [$written->exitCode, $written->errors]);
        self::assertStringContainsString("  app.php\n", $written->output);
        self::assertStringContainsString('`vendor/bin/phpunit`', (string) \file_get_contents("{$this->directory}/README.md"));
        foreach ([$written->output, (string) \file_get_contents("{$this->directory}/README.md")] as $steps) {
            self::assertMatchesRegularExpression('{^/\S+/bin/weft run app\.php --watch$}m', $steps);
            self::assertStringContainsString("\ncurl -i localhost:8080/greetings --json '{\"name\": \"Ada\"}'\n", $steps);
        }

        $address = '127.0.0.1:' . Port::free();
        $application = new Supervised("{$this->directory}/app.php", [], ['LISTEN' => $address, 'DATABASE_URL' => '', 'BROKER_URL' => '']);
        $application->wait('is ready');
        $post = static fn(string $body): HttpAnswer => HttpAnswer::of("http://$address/greetings", ['method' => 'POST', 'header' => 'content-type: application/json', 'content' => $body]);
        self::assertSame('HTTP/1.1 202 Accepted', $post('{"name": "Ada"}')->headers[0] ?? null);
        Timing::until(
            static fn(): bool => \file_get_contents("http://$address/greetings") === '["Hello, Ada!"]',
            'the greeting of Ada',
        );
        self::assertSame([422, 422], [$post('{}')->status, $post('{"name": ""}')->status]);
        $application->signal(\SIGTERM);
        self::assertSame(0, $application->end());
    }

    public function testTheTestOfTheApplicationPasses(): void
    {
        Weft::run(['new', $this->directory]);

        $phpunit = \is_file(\dirname(__DIR__, 2) . '/vendor/bin/phpunit') ? \dirname(__DIR__, 2) . '/vendor/bin/phpunit' : \trim((string) \shell_exec('command -v phpunit'));
        \exec(\sprintf('cd %s && %s -d extension=%s %s 2>&1', \escapeshellarg($this->directory), \PHP_BINARY, \escapeshellarg(Extension::library()), \escapeshellarg($phpunit)), $output, $code);

        self::assertSame(0, $code, \implode("\n", $output));
        self::assertStringContainsString('OK (1 test', \implode("\n", $output));
    }

    /** A checkout in which somebody has tried the example has more files there. */
    public function testTheApplicationHasTheFilesOfTheExampleThatGitKnows(): void
    {
        \exec('git -C ' . \escapeshellarg(self::root() . '/examples/starter') . ' ls-files 2>/dev/null', $known, $code);
        if ($code !== 0) {
            self::markTestSkipped('this is no checkout');
        }
        $library = "{$this->directory}/library";
        \mkdir("{$library}/examples", recursive: true);
        \exec(\sprintf('cp -a %s %s', \escapeshellarg(self::root() . '/examples/starter'), \escapeshellarg("{$library}/examples/")));
        foreach (['.env', '.phpunit.result.cache', 'composer.lock', 'var/app.sqlite'] as $name) {
            \file_put_contents("{$library}/examples/starter/{$name}", 'mine');
        }

        $written = (new ApplicationTemplate($library))->writeTo("{$this->directory}/app");

        self::assertSame($known, $written);
        \exec('cd ' . \escapeshellarg("{$this->directory}/app") . " && find . -type f -printf '%P\n' | LC_ALL=C sort", $found);
        self::assertSame($known, $found);
    }

    public function testComposerFindsTheLibraryThatHasWrittenTheApplication(): void
    {
        Weft::run(['new', $this->directory]);

        $project = \json_decode((string) \file_get_contents("{$this->directory}/composer.json"), true, flags: \JSON_THROW_ON_ERROR);
        self::assertSame(['weft' => ['type' => 'path', 'url' => self::root(), 'options' => ['versions' => ['weft/weft' => \explode('-', Version::LIBRARY)[0]]]]], $project['repositories']);
        self::assertSame('^0.2', $project['require']['weft/weft']);
    }

    public function testFilesNameTheProgramThatTheApplicationHas(): void
    {
        Weft::run(['new', $this->directory]);
        $named = 0;
        foreach (['README.md', 'app.php', 'bus.php', 'Dockerfile', 'app.service'] as $file) {
            \preg_match_all('{([\w./"-]*)\bweft"?,? "?(run|queues)\b}', (string) \file_get_contents("{$this->directory}/{$file}"), $programs);
            foreach ($programs[1] as $path) {
                self::assertStringEndsWith($file === 'README.md' ? self::root() . '/bin/' : 'vendor/bin/', $path, $file);
                $named++;
            }
        }

        self::assertGreaterThanOrEqual(4, $named);
    }

    /** `composer require weft/weft` and `vendor/bin/weft new my-app`, on a system whose only PSR interfaces are those that Composer has installed. */
    public function testAnApplicationOfAComposerInstallationLoadsTheAutoloaderOfThatInstallation(): void
    {
        $package = "{$this->directory}/vendor/weft/weft";
        \mkdir("{$package}/examples", recursive: true);
        \copy(self::root() . '/autoload.php', "{$package}/autoload.php");
        \exec(\sprintf('cp -a %s %s', \escapeshellarg(self::root() . '/examples/starter'), \escapeshellarg("{$package}/examples/")));
        $real = \var_export(self::root() . '/autoload.php', true);
        \file_put_contents("{$this->directory}/vendor/autoload.php", "<?php const COMPOSER_INSTALLATION = true; return require_once {$real};");
        (new ApplicationTemplate($package))->writeTo("{$this->directory}/my-app");

        $program = "require '{$this->directory}/my-app/autoload.php'; echo defined('COMPOSER_INSTALLATION') ? 'loaded' : 'missed', (int) class_exists(App\Greetings::class);";
        \exec(\implode(' ', \array_map(\escapeshellarg(...), [\PHP_BINARY, '-d', 'extension=' . Extension::library(), '-r', $program])) . ' 2>&1', $output);

        self::assertSame('loaded1', \implode("\n", $output));
        self::assertStringContainsString("composer install\nvendor/bin/weft run", (string) \file_get_contents("{$this->directory}/my-app/README.md"));
        self::assertStringNotContainsString('repositories', (string) \file_get_contents("{$this->directory}/my-app/composer.json"));
    }

    /**
     * The steps of the image that install the application, in directories of this test: with a lock file that names the library on the machine of
     * the developer, which the image lacks, and without one. The archive has no extension here, and other packages are names only.
     *
     * @dataProvider lockFiles
     */
    #[DataProvider('lockFiles')]
    public function testTheDockerfileInstallsTheLibraryOfTheArchive(bool $locked): void
    {
        if (\shell_exec('command -v composer') === null) {
            self::markTestSkipped('composer is not installed');
        }
        $elsewhere = "{$this->directory}/elsewhere/weft";
        $image = "{$this->directory}/image";
        foreach ([$elsewhere, "{$image}/tmp", "{$image}/opt", "{$this->directory}/archive/weft-0-php-x", "{$this->directory}/composer"] as $directory) {
            \mkdir($directory, recursive: true);
        }
        foreach ([$elsewhere, "{$this->directory}/archive/weft-0-php-x"] as $library) {
            self::command(['cp', '-a', ...\array_map(static fn(string $name): string => self::root() . "/{$name}", ['autoload.php', 'composer.json', 'src']), $library]);
        }
        \mkdir("{$elsewhere}/examples");
        self::command(['cp', '-a', self::root() . '/examples/starter', "{$elsewhere}/examples/"]);
        \file_put_contents("{$this->directory}/archive/weft-0-php-x/install", "#!/bin/sh\n");
        \chmod("{$this->directory}/archive/weft-0-php-x/install", 0o755);
        $this->namePackages("{$this->directory}/composer");
        $application = "{$image}/srv/app";
        (new ApplicationTemplate($elsewhere))->writeTo($application);
        if ($locked) {
            $this->inImage('composer update --no-install', $application);
            self::assertStringContainsString($elsewhere, (string) \file_get_contents("{$application}/composer.lock"));
        }
        self::command(['rm', '-rf', $elsewhere]);
        foreach (['aarch64', 'x86_64', \php_uname('m')] as $machine) {
            self::command(['tar', '-czf', "{$application}/weft-" . Version::LIBRARY . "-php8.4-nts-linux-{$machine}-gnu.tgz", '-C', "{$this->directory}/archive", 'weft-0-php-x']);
        }
        self::command(['sh', '-c', "cp {$application}/weft-*.tgz {$image}/tmp/"]);

        foreach ($this->steps(['/opt/weft/install', 'composer install']) as $step) {
            $this->inImage(\strtr($step, ['${WEFT}' => Version::LIBRARY, '${PHP}' => '8.4', '/tmp/' => "{$image}/tmp/", '/opt' => "{$image}/opt", ' && chown app var' => '']), $application);
        }

        self::assertSame([], [...(\glob("{$application}/*.tgz") ?: []), ...(\glob("{$image}/tmp/*") ?: [])]);
        self::assertSame(\realpath("{$image}/opt/weft"), \realpath("{$application}/vendor/weft/weft"));
        self::assertSame('1', $this->inImage('php -r \'require "vendor/autoload.php"; echo (int) (class_exists(Weft\App::class) && class_exists(App\Greet::class));\'', $application));
    }

    /** @return iterable<string, array{bool}> */
    public static function lockFiles(): iterable
    {
        yield 'without a lock file' => [false];
        yield 'with the lock file of another machine' => [true];
    }

    /**
     * The instructions RUN of the Dockerfile that contain one of the texts.
     *
     * @param list<string> $texts
     *
     * @return list<string>
     */
    private function steps(array $texts): array
    {
        \preg_match_all('/^RUN ((?:.*\\\\\n)*.*)/m', (string) \file_get_contents(self::root() . '/examples/starter/Dockerfile'), $found);
        $steps = \array_filter($found[1], static fn(string $step): bool => \array_filter($texts, static fn(string $text): bool => \str_contains($step, $text)) !== []);
        self::assertCount(\count($texts), $steps);

        return \array_values($steps);
    }

    /** Composer asks no server: the packages that the library and the application need are names without files. */
    private function namePackages(string $home): void
    {
        $versions = ['dragonmantank/cron-expression' => '3.3.0', 'psr/container' => '2.0.0', 'psr/log' => '3.0.0', 'symfony/console' => '6.4.0', 'phpunit/phpunit' => '10.5.0'];
        $packages = [];
        foreach ($versions as $name => $version) {
            $packages[] = ['name' => $name, 'version' => $version, 'type' => 'metapackage'];
        }
        \file_put_contents("{$home}/config.json", \json_encode(['repositories' => ['packagist.org' => false, 'names' => ['type' => 'package', 'package' => $packages]]], \JSON_THROW_ON_ERROR));
    }

    /** With a `php` that has the extension, as after the step that installs it. */
    private function inImage(string $command, string $directory): string
    {
        $programs = "{$this->directory}/programs";
        if (!\is_dir($programs)) {
            \mkdir($programs);
            $options = \escapeshellarg(\PHP_BINARY) . ' -d extension=' . \escapeshellarg(Extension::library());
            \file_put_contents("{$programs}/php", "#!/bin/sh\nexec {$options} \"\$@\"\n");
            \file_put_contents("{$programs}/composer", "#!/bin/sh\nexec {$options} " . \trim((string) \shell_exec('command -v composer')) . " --no-interaction --quiet \"\$@\"\n");
            \array_map(static fn(string $name): bool => \chmod("{$programs}/{$name}", 0o755), ['php', 'composer']);
        }

        return self::command(['env', "PATH={$programs}:" . \getenv('PATH'), "COMPOSER_HOME={$this->directory}/composer", 'COMPOSER_ALLOW_SUPERUSER=1', 'sh', '-c', 'cd "$1" && ' . $command, 'sh', $directory]);
    }

    /** @param list<string> $command */
    private static function command(array $command): string
    {
        \exec(\implode(' ', \array_map(\escapeshellarg(...), $command)) . ' 2>&1', $output, $code);
        self::assertSame(0, $code, \implode(' ', $command) . "\n" . \implode("\n", $output));

        return \implode("\n", $output);
    }

    public function testTheGuideAboutContainersShowsTheDockerfile(): void
    {
        $guide = (string) \file_get_contents(self::root() . '/docs/guides/deploy-containers.md');

        self::assertSame(1, \preg_match('/^```dockerfile title="Dockerfile"\n(.*?)^```$/ms', $guide, $shown));
        self::assertSame((string) \file_get_contents(self::root() . '/examples/starter/Dockerfile'), $shown[1]);
    }

    /** Extension and library must have the same version; the directory may have archives of others. */
    public function testTheDockerfileAsksForTheArchiveOfTheVersionThatHasWrittenIt(): void
    {
        Weft::run(['new', $this->directory]);

        self::assertMatchesRegularExpression('/^ARG WEFT=' . \preg_quote(Version::LIBRARY) . '$/m', (string) \file_get_contents("{$this->directory}/Dockerfile"));
        $release = \explode('-', Version::LIBRARY)[0];
        self::assertMatchesRegularExpression('/^ARG WEFT=' . \preg_quote($release) . '$/m', (string) \file_get_contents(self::root() . '/examples/starter/Dockerfile'));
    }

    /** `docker stop` kills the container after 10 s. */
    public function testWorkersOfTheContainerEndBeforeItIsKilledAndAfterTheirGrace(): void
    {
        $steps = (string) \file_get_contents(self::root() . '/examples/starter/Dockerfile');
        $application = (string) \file_get_contents(self::root() . '/examples/starter/app.php');

        self::assertSame(1, \preg_match('/^CMD .*"--drain-timeout=(\d+)"/m', $steps, $drain));
        self::assertSame(1, \preg_match('/new App\(grace: ([\d.]+)\)/', $application, $grace));
        self::assertLessThan(10, (int) $drain[1]);
        self::assertLessThan((int) $drain[1], (float) $grace[1]);
    }

    /** Ordering alone starts nothing: without Wants= the network need not be there when the service starts. */
    public function testEveryUnitOfSystemdWantsTheNetworkThatItComesAfter(): void
    {
        foreach (['examples/starter/app.service', 'docs/tutorials/6-deploy.md', 'docs/guides/deploy-systemd.md', 'docs/reference/operations.md'] as $file) {
            self::assertMatchesRegularExpression('/^After=network-online\.target.*\nWants=network-online\.target\n/m', (string) \file_get_contents(self::root() . "/{$file}"), $file);
        }
    }

    /** A unit without it runs the application as root. */
    public function testEveryUnitOfSystemdNamesItsUser(): void
    {
        foreach (['examples/starter/app.service', 'docs/tutorials/6-deploy.md', 'docs/guides/deploy-systemd.md', 'docs/reference/operations.md'] as $file) {
            self::assertMatchesRegularExpression('/^\[Service\]\nType=notify\nUser=www-data\n/m', (string) \file_get_contents(self::root() . "/{$file}"), $file);
        }
    }

    /** php:8.4-cli has neither unzip and git nor ext-zip, and Composer downloads archives. */
    public function testTheDockerfileInstallsWhatComposerUnpacksPackagesWith(): void
    {
        $steps = (string) \file_get_contents(self::root() . '/examples/starter/Dockerfile');

        self::assertMatchesRegularExpression('~^RUN apt-get update && apt-get install -y --no-install-recommends unzip && rm -rf /var/lib/apt/lists/\*~m', $steps);
        self::assertLessThan(\strpos($steps, 'composer install'), \strpos($steps, ' unzip '));
    }

    /** Debian 12 has systemd 252, which ignores Type=notify-reload and takes the unit for one of Type=simple. */
    public function testEveryUnitOfSystemdIsReloadedAsSystemd252Can(): void
    {
        $units = [];
        foreach (['examples/starter/app.service', 'docs/tutorials/6-deploy.md', 'docs/guides/deploy-systemd.md', 'docs/reference/operations.md'] as $file) {
            \preg_match_all('/^\[Service\]\n(.*?)^\[Install\]$/ms', (string) \file_get_contents(self::root() . "/{$file}"), $services);
            self::assertCount(1, $services[1], $file);
            $units[$file] = \preg_grep('/^(Type|ExecReload|WatchdogSec|Restart|TimeoutStopSec|LimitNOFILE|KillMode)=/', \explode("\n", $services[1][0])) ?: [];
        }

        foreach ($units as $file => $lines) {
            self::assertSame([
                'Type=notify',
                'ExecReload=/bin/kill -HUP $MAINPID',
                'WatchdogSec=30',
                'Restart=on-failure',
                'TimeoutStopSec=50',
                'LimitNOFILE=65536',
                'KillMode=mixed',
            ], \array_values($lines), $file);
        }
    }

    public function testADirectoryThatIsNotEmptyIsLeftAlone(): void
    {
        \mkdir($this->directory);
        \file_put_contents("{$this->directory}/app.php", 'mine');

        $refused = Weft::run(['new', $this->directory]);

        self::assertSame("weft: {$this->directory} exists and is not an empty directory: nothing was written\nHelp: weft explain cli-new-application", \trim($refused->output . $refused->errors));
        self::assertSame(1, $refused->exitCode);
        self::assertSame('mine', \file_get_contents("{$this->directory}/app.php"));
        self::assertCount(3, (array) \scandir($this->directory));
    }

    public function testAnEmptyNameIsRefused(): void
    {
        $this->expectException(\Weft\Cli\NewApplicationException::class);
        $this->expectExceptionMessage('The name of the directory is empty: nothing was written');

        // Without a template, because files of an empty name would be written to the root directory.
        (new ApplicationTemplate($this->directory))->writeTo('');
    }

    public function testTheNextCommandQuotesTheDirectory(): void
    {
        \mkdir($this->directory);
        $name = "{$this->directory}/it's my app";

        self::assertSame(1, \preg_match('/^cd .*$/m', Weft::run(['new', $name])->output, $command));
        \exec("{$command[0]} && pwd", $output);

        self::assertSame([$name], $output);
        self::assertStringContainsString("\ncd {$this->directory}/plain\n", Weft::run(['new', "{$this->directory}/plain"])->output);
    }

    public function testTheParentOfADirectoryThatDoesNotExistIsFollowed(): void
    {
        $written = Weft::run(['new', "{$this->directory}/a/missing/../app"]);

        self::assertSame([0, ''], [$written->exitCode, $written->errors]);
        self::assertStringContainsString("\ncd {$this->directory}/a/app\n", $written->output);
        self::assertFileExists("{$this->directory}/a/app/src/Greet.php");
        self::assertSame(['.', '..', 'app'], \scandir("{$this->directory}/a"));
    }

    public function testTheParentOfALinkIsThatOfTheDirectoryItNames(): void
    {
        \mkdir("{$this->directory}/deep/down", recursive: true);
        \symlink("{$this->directory}/deep/down", "{$this->directory}/link");

        $written = Weft::run(['new', "{$this->directory}/link/../app"]);

        self::assertSame([0, ''], [$written->exitCode, $written->errors]);
        self::assertFileExists("{$this->directory}/deep/app/src/Greet.php");
    }

    public function testADirectoryThatCannotBeMadeIsNamed(): void
    {
        $refused = Weft::run(['new', '/proc/weft-app']);

        self::assertStringContainsString('Cannot create the directory /proc/weft-app', $refused->output . $refused->errors);
        self::assertSame(1, $refused->exitCode);
    }

    private static function root(): string
    {
        return \dirname(__DIR__, 2);
    }
}
