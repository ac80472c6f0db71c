<?php

declare(strict_types=1);

namespace Weft\Bench\State\Symfony;

use Doctrine\ORM\Mapping as ORM;

/** What a request writes in its transaction. */
#[ORM\Entity]
#[ORM\Table(name: 'state_visits')]
class Visit
{
    #[ORM\Id]
    #[ORM\GeneratedValue]
    #[ORM\Column]
    public ?int $id = null;

    public function __construct(#[ORM\Column(length: 40)] public string $request, #[ORM\Column(length: 20)] public string $visitor)
    {
    }
}
