<?php

declare(strict_types=1);

namespace Weft\Tests\Lock;

use Weft\Lock\LockStore;
use Weft\Lock\MemoryStore;

final class MemoryStoreTest extends LockStoreConformance
{
    private ?MemoryStore $store = null;

    protected function store(): LockStore
    {
        return $this->store ??= new MemoryStore();
    }
}
