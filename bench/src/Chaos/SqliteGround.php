<?php

declare(strict_types=1);

namespace Weft\Bench\Chaos;

/** One file is broker and database: there is nothing to break but workers. */
final class SqliteGround implements Ground
{
    public function __construct(private readonly string $directory)
    {
        array_map(unlink(...), array_filter(glob("{$directory}/chaos.db*") ?: [], is_file(...)));
    }

    public function broker(): string
    {
        return "sqlite://{$this->directory}/chaos.db";
    }

    public function database(): string
    {
        return $this->broker();
    }

    public function directDatabase(): string
    {
        return $this->broker();
    }

    public function faults(): array
    {
        return [];
    }

    public function close(): void
    {
    }
}
