<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Laravel;

/** A class whose parent has private properties. */
final class FetchedChild extends Fetched
{
}
