<?php

declare(strict_types=1);

namespace Weft\Tests\Harness;

/** Some test files in one PHPUnit process. */
final class PhpJob extends Job
{
    /**
     * @param list<string> $files   below the root
     * @param list<string> $options of PHP
     */
    public function __construct(
        private readonly string $root,
        private readonly array $files,
        float $expected,
        private readonly array $options = [],
        private readonly string $label = '',
        ?float $deadline = null,
    ) {
        $others = \count($files) > 1 ? ' and ' . \count($files) - 1 . ' more' : '';
        parent::__construct($files[0] . $others . ($label === '' ? '' : " ($label)"), $expected, $deadline ?? \max(600.0, 6 * $expected));
    }

    public function command(string $directory): array
    {
        $extension = (string) \getenv('WEFT_EXTENSION');
        \file_put_contents("$directory/phpunit.xml", $this->configuration());

        return [
            \PHP_BINARY, ...$this->options, '-d', "extension=$extension", '-d', 'zend.assertions=1', self::program($this->root),
            '--configuration', "$directory/phpunit.xml", '--do-not-cache-result', '--colors=never', '--log-junit', "$directory/junit.xml",
        ];
    }

    public function result(string $directory, int $code): Result
    {
        $report = @\simplexml_load_file("$directory/junit.xml");
        $last = (string) @\file_get_contents("$directory/progress");
        if ($report === false) {
            $result = new Result();
            $result->fail("{$this->name}: PHPUnit ended with exit code $code before its report was written, in $last", Output::tail("$directory/output"));

            return $result;
        }
        $result = $this->counts($report, \array_map(static fn (string $line): array => \explode("\t", $line, 2), \array_filter(\explode("\n", (string) @\file_get_contents("$directory/skips")))));
        if ($result->failed === 0 && $code !== 0 || $result->passed + $result->failed + $result->skipped === 0) {
            $result->fail("{$this->name}: PHPUnit ended with exit code $code and {$result->passed} passed tests", Output::tail("$directory/output"));
        }

        return $result;
    }

    /** `vendor/bin/phpunit` where Composer installed one, else the machine's. */
    public static function program(string $root): string
    {
        if (\is_executable("$root/vendor/bin/phpunit")) {
            return "$root/vendor/bin/phpunit";
        }
        foreach (\explode(':', (string) \getenv('PATH')) as $directory) {
            if (\is_executable("$directory/phpunit")) {
                return "$directory/phpunit";
            }
        }
        throw new \RuntimeException('PHPUnit is not installed: scripts/setup test');
    }

    private static function version(string $root): int
    {
        static $version;

        return $version ??= (int) \preg_replace('/^PHPUnit (\d+).*/s', '$1', (string) \shell_exec(\escapeshellarg(self::program($root)) . ' --version'));
    }

    /**
     * Counts test by test: PHPUnit 13 writes no sums for a suite that holds a class that was skipped as a whole, and no tests of that class.
     *
     * @param list<array{string, string}> $skips each test that was skipped, and the reason
     */
    private function counts(\SimpleXMLElement $report, array $skips): Result
    {
        $count = static fn (string $condition): int => \count($report->xpath("//testcase$condition") ?: []);
        $failed = $count('[failure or error or warning]');
        $result = new Result($count('') - $failed - $count('[skipped]'), $failed, \count($skips));
        $result->skips = $skips;
        foreach ($report->xpath('//testcase[failure or error or warning]') ?: [] as $case) {
            $said = $case->failure[0] ?? $case->error[0] ?? $case->warning[0];
            $result->failures["$case[class]::$case[name]" . ($this->label === '' ? '' : " ({$this->label})")] = \trim((string) $said);
        }
        foreach ($report->xpath('//testsuite[@file]') ?: [] as $suite) {
            $file = \str_replace("{$this->root}/", '', (string) $suite['file']);
            // A class's suite holds those of its data providers, which name no file.
            $result->times[$file . $this->label] = ($result->times[$file . $this->label] ?? 0.0) + (float) $suite['time'];
        }

        return $result;
    }

    /** The repository's configuration with this job's files as the only suite, and with the guard of the servers. */
    private function configuration(): string
    {
        $document = new \DOMDocument();
        $document->load("{$this->root}/phpunit.xml.dist");
        $root = $document->documentElement ?? throw new \LogicException('phpunit.xml.dist is empty');
        $root->setAttribute('bootstrap', "{$this->root}/tests/bootstrap.php");
        $root->removeAttribute('defaultTestSuite');
        foreach (['testsuites', 'coverage', 'source'] as $name) {
            foreach (\iterator_to_array($document->getElementsByTagName($name)) as $node) {
                $root->removeChild($node);
            }
        }
        $suite = $document->createElement('testsuite');
        $suite->setAttribute('name', 'job');
        foreach ($this->files as $file) {
            $suite->appendChild($document->createElement('file', "{$this->root}/$file"));
        }
        if (self::version($this->root) >= 10) {
            $this->adapt($document, $root);
        }
        $root->appendChild($document->createElement('testsuites'))->appendChild($suite);

        return (string) $document->saveXML();
    }

    /**
     * What PHPUnit 10 and later call differently. They report a deprecation instead of throwing it, so that it fails the run; only those of
     * this repository's own code count, because libraries of distributions are older than some versions of PHP.
     */
    private function adapt(\DOMDocument $document, \DOMElement $root): void
    {
        foreach (\iterator_to_array($document->getElementsByTagName('extension')) as $hook) {
            $bootstrap = $document->createElement('bootstrap');
            $bootstrap->setAttribute('class', Extension::class);
            $hook->parentNode?->replaceChild($bootstrap, $hook);
        }
        $root->removeAttribute('convertDeprecationsToExceptions');
        $root->setAttribute('failOnDeprecation', 'true');
        foreach (['Deprecations', 'Errors', 'Notices', 'Warnings'] as $kind) {
            $root->setAttribute("displayDetailsOnTestsThatTrigger$kind", 'true');
        }
        $source = $root->appendChild($document->createElement('source'));
        \assert($source instanceof \DOMElement);
        $deprecations = self::version($this->root) >= 13 ? ['ignoreDirectDeprecations', 'ignoreIndirectDeprecations'] : ['restrictDeprecations'];
        foreach ([...$deprecations, 'restrictNotices', 'restrictWarnings'] as $restriction) {
            $source->setAttribute($restriction, 'true');
        }
        $include = $source->appendChild($document->createElement('include'));
        foreach (['src', 'tests', 'bench/src', 'examples'] as $directory) {
            $include->appendChild($document->createElement('directory', "{$this->root}/$directory"));
        }
    }
}
