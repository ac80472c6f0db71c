<?php

declare(strict_types=1);

namespace Weft\Site;

/** The metrics that the sources register, with the help text that `/metrics` shows. */
final class Metrics
{
    /** A call, or an entry of a table, that begins with a name and a help text; in Rust both may be variables. */
    private const RUST = '/(?:\b(?P<kind>counter|gauge|histogram))?\(\s*(?P<name>"weft_\w+"|[a-z]+),\s*(?P<help>"[^"]+"|[a-z]+)\s*[,)]/';
    private const PHP = "/\\b(?P<kind>addToCounter|setGauge|Histogram)\\(\\s*(?P<name>'weft_\\w+'),\\s*(?P<help>'[^']+')/";

    private function __construct() {}

    /** @return array<string, array{kind: string, help: string}> by name */
    public static function of(string $root): array
    {
        $found = [];
        foreach (['rs' => "$root/crates/core/src", 'php' => "$root/src"] as $extension => $directory) {
            foreach (new \RecursiveIteratorIterator(new \RecursiveDirectoryIterator($directory, \FilesystemIterator::SKIP_DOTS)) as $file) {
                if ($file->getExtension() === $extension) {
                    $found += self::inSource((string) \file_get_contents($file->getPathname()), $extension === 'rs' ? self::RUST : self::PHP);
                }
            }
        }
        // These names are put together.
        $outcomes = (new \ReflectionClass(\Weft\Bus\Internal\Metrics::class))->getReflectionConstant('HELP');
        foreach ($outcomes === false ? [] : (array) $outcomes->getValue() as $what => $help) {
            $found["weft_bus_{$what}_total"] = ['kind' => 'counter', 'help' => (string) $help];
        }
        \ksort($found);

        return $found;
    }

    /** @return array<string, array{kind: string, help: string}> */
    private static function inSource(string $source, string $pattern): array
    {
        // Neither tests nor comments register anything.
        $source = (string) \preg_replace(['~^#\[cfg\(test\)\].*~ms', '~^\s*(//|\*).*$~m'], '', $source);
        $found = [];
        \preg_match_all($pattern, $source, $calls, \PREG_SET_ORDER | \PREG_OFFSET_CAPTURE);
        foreach ($calls as $call) {
            $before = \substr($source, 0, $call[0][1]);
            $name = self::text($call['name'][0], $before);
            $help = self::text($call['help'][0], $before);
            if (\str_starts_with($name, 'weft_') && $help !== '') {
                $found[$name] ??= ['kind' => self::kind($name, $call['kind'][0]), 'help' => $help];
            }
        }

        return $found;
    }

    /** A literal's text, or that of the variable which was last given one. */
    private static function text(string $expression, string $before): string
    {
        if (\preg_match('/^["\'](.*)["\']$/s', $expression, $literal) === 1) {
            return $literal[1];
        }
        \preg_match_all("/let $expression = \"([^\"]*)\";/", $before, $values);

        return (string) \end($values[1]);
    }

    private static function kind(string $name, string $function): string
    {
        return match ($function) {
            'counter', 'addToCounter' => 'counter',
            'gauge', 'setGauge' => 'gauge',
            'histogram', 'Histogram' => 'histogram',
            default => \str_ends_with($name, '_total') ? 'counter' : throw new \LogicException("$name is registered neither as a counter nor as a gauge nor as a histogram"),
        };
    }
}
