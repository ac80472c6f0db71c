<?php

declare(strict_types=1);

namespace Weft\Examples\Api;

use Symfony\Component\Validator\Constraints as Assert;
use Weft\Validation\Validate;

/** A book to add. */
#[Validate]
final class AddBook
{
    /**
     * @param string $title as on its cover
     * @param list<Author> $authors in the order of the cover
     */
    public function __construct(
        #[Assert\Length(min: 1, max: 200)]
        public readonly string $title,
        public readonly Genre $genre,
        #[Assert\Positive]
        public readonly int $pages,
        #[Assert\Valid]
        public readonly array $authors = [],
        public readonly ?\DateTimeImmutable $published = null,
    ) {
    }
}
