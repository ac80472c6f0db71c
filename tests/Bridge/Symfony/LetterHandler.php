<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Symfony;

/** Registered for one transport only. */
final class LetterHandler
{
    /** @var list<string> */
    public static array $handled = [];

    public function __invoke(Letter $letter): void
    {
        self::$handled[] = $letter->text;
    }
}
