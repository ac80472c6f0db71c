<?php

declare(strict_types=1);

namespace Weft\Examples\Api;

/** A book of the library. */
final class Book
{
    /** @param list<Author> $authors */
    public function __construct(
        public readonly int $id,
        public readonly string $title,
        public readonly Genre $genre,
        public readonly int $pages,
        public readonly array $authors,
        public readonly ?\DateTimeImmutable $published,
    ) {
    }
}
