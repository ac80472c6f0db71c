<?php

declare(strict_types=1);

namespace Weft\Examples\Api;

use Symfony\Component\Validator\Constraints as Assert;

final class Author
{
    public function __construct(
        #[Assert\NotBlank]
        public readonly string $name,
        #[Assert\Email]
        public readonly ?string $email = null,
    ) {
    }
}
