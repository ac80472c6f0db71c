<?php

declare(strict_types=1);

namespace Weft\Tests\Packaging;

use PHPUnit\Framework\TestCase;
use Weft\Version;

/** What `scripts/publish` pushes, to repositories in a directory. A script takes the place of gh. */
final class PublishTest extends TestCase
{
    private string $directory;

    protected function setUp(): void
    {
        $this->directory = \sys_get_temp_dir() . '/weft-publish-' . \bin2hex(\random_bytes(6));
        \mkdir("{$this->directory}/release", recursive: true);
        \mkdir("{$this->directory}/bin");
        foreach (['ext-weft', 'laravel', 'symfony'] as $name) {
            self::command(['git', 'init', '--quiet', '--bare', '--initial-branch=main', "{$this->directory}/packages/$name.git"]);
        }
        $this->source('of a first build');
        foreach (['php8.2-x86_64', 'php8.6-arm64'] as $build) {
            \touch("{$this->directory}/release/php_weft-" . Version::LIBRARY . "_$build-linux-glibc.tgz");
        }
        \touch("{$this->directory}/release/php_weft-0.0.9_php8.2-x86_64-linux-glibc.tgz");
        \file_put_contents("{$this->directory}/bin/gh", "#!/bin/sh\necho \"\$*\" >>{$this->directory}/gh\n[ \"\$2\" != view ] || [ -e {$this->directory}/released ]\n");
        \chmod("{$this->directory}/bin/gh", 0o755);
    }

    protected function tearDown(): void
    {
        \exec('rm -rf ' . \escapeshellarg($this->directory));
    }

    public function testEachPackageHasItsRepositoryWithItsComposerJsonAtTheRootAndATag(): void
    {
        $this->publish();

        foreach (['ext-weft' => 'weft/ext-weft', 'laravel' => 'weft/laravel', 'symfony' => 'weft/symfony'] as $repository => $package) {
            $fields = \json_decode($this->git($repository, 'show', Version::LIBRARY . ':composer.json'), true, flags: \JSON_THROW_ON_ERROR);
            self::assertSame($package, $fields['name']);
            self::assertSame($this->git($repository, 'rev-parse', 'main'), $this->git($repository, 'rev-parse', Version::LIBRARY . '^{commit}'));
            self::assertStringContainsString("LICENSE\n", $this->git($repository, 'ls-tree', '--name-only', 'main') . "\n");
        }
        self::assertSame('of a first build', $this->git('ext-weft', 'show', 'main:config.m4'));
        self::assertSame(
            \trim((string) \file_get_contents(self::root() . '/src/Bridge/Laravel/WeftServiceProvider.php')),
            $this->git('laravel', 'show', 'main:WeftServiceProvider.php'),
        );
    }

    public function testPublishingAgainChangesNothing(): void
    {
        $this->publish();
        $before = $this->git('ext-weft', 'rev-parse', 'main');

        $this->publish();

        self::assertSame($before, $this->git('ext-weft', 'rev-parse', 'main'));
    }

    public function testAPublishedVersionIsNotReplaced(): void
    {
        $this->publish();
        $before = $this->git('ext-weft', 'rev-parse', 'main');
        $this->source('of a second build');

        [$code, $output] = $this->tryToRun(Version::LIBRARY, "{$this->directory}/packages");

        self::assertSame(1, $code, $output);
        self::assertStringContainsString("publish: {$this->directory}/packages/ext-weft.git has the tag " . Version::LIBRARY . ' with other files', $output);
        self::assertSame($before, $this->git('ext-weft', 'rev-parse', 'main'));
    }

    public function testTheNextVersionFollowsWithExactlyItsFiles(): void
    {
        $this->publish();
        // As if what is there were of the version before.
        $this->git('ext-weft', 'tag', '0.0.9', Version::LIBRARY);
        $this->git('ext-weft', 'tag', '--delete', Version::LIBRARY);
        $this->source('of the next version', ['config.m4', 'composer.json', 'LICENSE', 'new']);

        $this->publish();

        self::assertSame('2', $this->git('ext-weft', 'rev-list', '--count', 'main'));
        self::assertSame("LICENSE\ncomposer.json\nconfig.m4\nnew", $this->git('ext-weft', 'ls-tree', '--name-only', 'main'));
    }

    public function testNothingIsPushedIfARepositoryIsMissing(): void
    {
        \exec('rm -rf ' . \escapeshellarg("{$this->directory}/packages/symfony.git"));

        [$code, $output] = $this->tryToRun(Version::LIBRARY, "{$this->directory}/packages");

        self::assertSame(1, $code, $output);
        self::assertStringContainsString("publish: {$this->directory}/packages/symfony.git cannot be cloned", $output);
        self::assertSame('', $this->git('ext-weft', 'for-each-ref'));
    }

    public function testATagThatIsNotTheVersionIsRefused(): void
    {
        [$code, $output] = $this->tryToRun('99.0.0', "{$this->directory}/packages");

        self::assertSame([1, 'publish: the tag "99.0.0" is not the version "' . Version::LIBRARY . '" of this commit'], [$code, $output]);
    }

    /** PIE asks for the release of the tag in the repository of weft/ext-weft. */
    public function testBinariesOfThisVersionAreAttachedToTheReleaseAtGithub(): void
    {
        $this->publish('https://github.com/acme');

        $version = Version::LIBRARY;
        $calls = \file("{$this->directory}/gh", \FILE_IGNORE_NEW_LINES) ?: [];
        self::assertCount(3, $calls);
        self::assertSame("release view $version --repo acme/ext-weft", $calls[0]);
        self::assertStringStartsWith("release create $version --repo acme/ext-weft --verify-tag ", $calls[1]);
        self::assertSame(
            "release upload $version --repo acme/ext-weft --clobber {$this->directory}/release/php_weft-{$version}_php8.2-x86_64-linux-glibc.tgz"
            . " {$this->directory}/release/php_weft-{$version}_php8.6-arm64-linux-glibc.tgz",
            $calls[2],
        );
        self::assertSame($this->git('ext-weft', 'rev-parse', 'main'), $this->git('ext-weft', 'rev-parse', "$version^{commit}"));

        // A run that failed in between is repeated.
        \touch("{$this->directory}/released");
        $this->publish('https://github.com/acme');
        self::assertCount(1, \preg_grep('/^release create /', \file("{$this->directory}/gh") ?: []) ?: []);
    }

    /** @param list<string> $files */
    private function source(string $configuration, array $files = ['config.m4', 'composer.json', 'LICENSE', 'stubs/runtime.php']): void
    {
        $name = 'weft-ext-' . Version::LIBRARY;
        $place = "{$this->directory}/$name";
        \exec('rm -rf ' . \escapeshellarg($place));
        foreach ($files as $file) {
            @\mkdir(\dirname("$place/$file"), recursive: true);
            \touch("$place/$file");
        }
        \file_put_contents("$place/config.m4", $configuration);
        \copy(self::root() . '/packaging/extension/composer.json', "$place/composer.json");
        self::command(['tar', '-C', $this->directory, '-czf', "{$this->directory}/release/$name.tgz", $name]);
    }

    private function publish(?string $url = null): void
    {
        [$code, $output] = $this->tryToRun(Version::LIBRARY, $url ?? "{$this->directory}/packages");
        self::assertSame(0, $code, $output);
    }

    /** @return array{int, string} */
    private function tryToRun(string $tag, string $url): array
    {
        return self::execute([
            'env', "PATH={$this->directory}/bin:" . \getenv('PATH'),
            // Addresses at GitHub lead to the directory.
            'GIT_CONFIG_COUNT=1', "GIT_CONFIG_KEY_0=url.{$this->directory}/packages/.insteadOf", 'GIT_CONFIG_VALUE_0=https://github.com/acme/',
            self::root() . '/scripts/publish', "--tag=$tag", $url, "{$this->directory}/release",
        ]);
    }

    private function git(string $repository, string ...$arguments): string
    {
        return self::command(['git', '-C', "{$this->directory}/packages/$repository.git", ...$arguments]);
    }

    /** @param list<string> $command */
    private static function command(array $command): string
    {
        [$code, $output] = self::execute($command);
        self::assertSame(0, $code, $output);

        return $output;
    }

    /**
     * @param list<string> $command
     *
     * @return array{int, string}
     */
    private static function execute(array $command): array
    {
        \exec(\implode(' ', \array_map(\escapeshellarg(...), $command)) . ' 2>&1', $output, $code);

        return [$code, \implode("\n", $output)];
    }

    private static function root(): string
    {
        return \dirname(__DIR__, 2);
    }
}
