<?php

declare(strict_types=1);

namespace Weft\Tests\Documentation;

/** A code block of a page. */
final class Block
{
    /**
     * @param string $language of the fence: `php`, `sh`, `text`, …
     * @param string $title the file that the block is, relative to the directory of the page; empty for none
     * @param string $directive the word of the comment before the block: `server`, `log`, `until`, `skip`; empty for none
     * @param string $argument what follows the word
     * @param int $line of the fence in the page
     */
    public function __construct(
        public readonly string $language,
        public readonly string $title,
        public readonly string $directive,
        public readonly string $argument,
        public readonly string $code,
        public readonly int $line,
    ) {
    }
}
