<?php

declare(strict_types=1);

namespace Weft\Tests\Cli;

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
        self::assertMatchesRegularExpression('{^/\S+/bin/weft run app\.php --watch$}m', $written->output);

        $address = '127.0.0.1:' . Port::free();
        $application = new Supervised("{$this->directory}/app.php", [], ['LISTEN' => $address, 'DATABASE_URL' => '', 'BROKER_URL' => '']);
        $application->wait('is ready');
        $post = static fn(string $body): HttpAnswer => HttpAnswer::of("http://$address/greetings", ['method' => 'POST', 'header' => 'content-type: application/json', 'content' => $body]);
        self::assertSame('HTTP/1.1 202 Accepted', $post('{"name": "Ada"}')->headers[0] ?? null);
        Timing::until(
            static fn(): bool => \file_get_contents("http://$address/greetings") === '["Hello, Ada!"]',
            'the greeting of Ada',
        );
        self::assertSame(422, $post('{}')->status);
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

    public function testComposerFindsTheCheckoutThatHasWrittenTheApplication(): void
    {
        Weft::run(['new', $this->directory]);

        $project = \json_decode((string) \file_get_contents("{$this->directory}/composer.json"), true, flags: \JSON_THROW_ON_ERROR);
        self::assertSame([['type' => 'path', 'url' => self::root(), 'options' => ['versions' => ['weft/weft' => \explode('-', Version::LIBRARY)[0]]]]], $project['repositories']);
        self::assertSame('^0.2', $project['require']['weft/weft']);
    }

    public function testFilesNameTheProgramThatTheApplicationHas(): void
    {
        Weft::run(['new', $this->directory]);
        $named = 0;
        foreach (['README.md', 'app.php', 'bus.php', 'Dockerfile', 'app.service'] as $file) {
            \preg_match_all('{([\w./"-]*)\bweft"?,? "?(run|queues)\b}', (string) \file_get_contents("{$this->directory}/{$file}"), $programs);
            foreach ($programs[1] as $path) {
                self::assertStringEndsWith('vendor/bin/', $path, $file);
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
        self::assertStringNotContainsString('repositories', (string) \file_get_contents("{$this->directory}/my-app/composer.json"));
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
