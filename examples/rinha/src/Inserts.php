<?php

declare(strict_types=1);

namespace Weft\Examples\Rinha;

/** Stores people. */
interface Inserts
{
    /**
     * Returns when the commit that holds the person is durable, never before.
     *
     * @return string the id of the person
     *
     * @throws Unacceptable when somebody has the nickname
     */
    public function add(Person $person): string;
}
