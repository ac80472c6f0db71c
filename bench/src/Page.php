<?php

declare(strict_types=1);

namespace Weft\Bench;

/** A published page: a template with the last published results in it. */
final class Page
{
    /**
     * @param string $template file with `{{name}}` in it
     * @param string $page file that is made from it
     */
    public function __construct(private readonly string $template, private readonly string $page)
    {
    }

    /**
     * @param array<string, string> $values by name
     * @param bool $onlyCheck checks whether the page is up to date, without writing
     *
     * @return int exit code
     *
     * @throws BenchmarkException if the template uses an unknown value
     */
    public function make(array $values, bool $onlyCheck): int
    {
        $text = (string) preg_replace_callback(
            '/\{\{([\w-]+)\}\}/',
            fn (array $match): string => rtrim($values[$match[1]] ?? throw new BenchmarkException("{$this->template} asks for {$match[1]}")),
            (string) file_get_contents($this->template),
        );

        return self::keep($this->page, $text, $onlyCheck);
    }

    /**
     * Puts text between `<!-- name -->` and `<!-- /name -->` of a page that is otherwise written by hand.
     *
     * @return int exit code
     *
     * @throws BenchmarkException when the page has no such place
     */
    public static function block(string $page, string $name, string $text, bool $onlyCheck): int
    {
        $pattern = "#(<!-- $name -->\\n).*(<!-- /$name -->)#s";
        $old = (string) file_get_contents($page);
        preg_match($pattern, $old) === 1 || throw new BenchmarkException("$page has no place between <!-- $name --> and <!-- /$name -->");
        $new = (string) preg_replace_callback($pattern, static fn (array $match): string => "$match[1]$text$match[2]", $old);

        return self::keep($page, $new, $onlyCheck);
    }

    private static function keep(string $page, string $text, bool $onlyCheck): int
    {
        if (!$onlyCheck) {
            file_put_contents($page, $text);

            return 0;
        }
        $upToDate = @file_get_contents($page) === $text;
        fwrite(STDERR, $upToDate ? '' : "$page differs from the output of its render script\n");

        return $upToDate ? 0 : 1;
    }

    /** @param array<string, string> $versions by product */
    public static function versions(array $versions): string
    {
        return implode(', ', array_map(
            static fn (string $product, string $version): string => "$product $version",
            array_keys($versions),
            $versions,
        ));
    }
}
