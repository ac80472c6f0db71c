<?php

declare(strict_types=1);

namespace Weft\Bench\Frameworks\Symfony;

use Doctrine\ORM\Mapping as ORM;

/** A row of a table with 10,000 people. */
#[ORM\Entity]
#[ORM\Table(name: 'frameworks_people')]
class Person
{
    #[ORM\Id]
    #[ORM\Column]
    public int $id;

    #[ORM\Column]
    public string $name;

    #[ORM\Column]
    public string $team;
}
