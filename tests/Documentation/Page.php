<?php

declare(strict_types=1);

namespace Weft\Tests\Documentation;

/**
 * A page whose blocks are run in their order:
 *
 * - a block with a title is a file, which is written: ```` ```php title="app.php" ````;
 * - a block in `sh` is run by bash in the directory of the files. If the next block is in `text`, that is what it prints; `…` stands for anything;
 * - `<!-- server -->` before a block in `sh`: it runs in the background until the next such block or the end of the page. The next block
 *   is run when it listens, or with `<!-- server: TEXT -->` when its output has TEXT;
 * - `<!-- log -->` before a block in `text`: the server prints these lines, in this order, perhaps with others in between;
 * - `<!-- until -->` before a block in `sh`: it is run again until it prints what the page says;
 * - `<!-- skip: REASON -->`: the block is not run;
 * - `<!-- needs: postgres, rabbitmq -->` anywhere: servers and libraries that the page uses.
 *
 * PHP blocks without a title are fragments: programs of other systems, which are parsed only.
 */
final class Page
{
    private const BLOCK = '/^(?:<!-- (server|log|until|skip)(?:: (.*?))? -->\n)?```(\w+)(?: title="([^"]+)")?\n(.*?)^```$/ms';

    /**
     * @param list<Block> $blocks
     * @param list<string> $needs
     */
    private function __construct(public readonly string $file, public readonly array $blocks, public readonly array $needs)
    {
    }

    public static function read(string $file): self
    {
        $text = (string) \file_get_contents($file);
        \preg_match_all(self::BLOCK, $text, $found, \PREG_SET_ORDER | \PREG_OFFSET_CAPTURE);
        $blocks = [];
        foreach ($found as $match) {
            [, $directive, $argument, $language, $title, $code] = \array_column($match, 0);
            $blocks[] = new Block($language, $title, $directive, $argument, $code, 1 + \substr_count($text, "\n", 0, $match[3][1]));
        }
        \preg_match('/^<!-- needs: (.*) -->$/m', $text, $needs);

        return new self($file, $blocks, isset($needs[1]) ? \explode(', ', $needs[1]) : []);
    }
}
