<?php

declare(strict_types=1);

namespace Weft\Http;

use Weft\Http\Internal\FileName;
use Weft\Native\HttpUpload;
use Weft\Runtime\Internal\Scheduler;

/** A file of a form. It is deleted when its request and this object are gone, unless it was moved. */
final class Upload
{
    /** What the client calls it, made safe: no path, nothing hidden, nothing that cannot be seen, never empty. */
    public readonly string $name;
    /** What the client says it is, which proves nothing. */
    public readonly ?string $type;
    /** Bytes. */
    public readonly int $size;
    private ?string $movedTo = null;

    /**
     * @internal
     *
     * @param string $field the name of its field in the form
     */
    public function __construct(private readonly HttpUpload $native, public readonly string $field)
    {
        $this->name = FileName::safe($native->fileName());
        $this->type = $native->contentType();
        $this->size = $native->size();
    }

    /** Where it is. */
    public function path(): string
    {
        return $this->movedTo ?? $this->native->path();
    }

    /**
     * Gives it a place of its own, that of another file if there is one, with the permissions of a new file. Waits for the disk.
     *
     * @throws UploadException it stays where it is
     * @throws \Error it was moved before
     */
    public function moveTo(string $path): void
    {
        if ($this->movedTo !== null) {
            throw new \Error("The upload \"$this->name\" was moved to $this->movedTo before");
        }
        Scheduler::await($this->native->moveTo($path));
        $this->movedTo = $path;
        \chmod($path, 0o666 & ~\umask());
    }

    /** All of it, in memory. */
    public function contents(): string
    {
        $contents = @\file_get_contents($this->path());

        return $contents === false ? throw new UploadException("{$this->path()} cannot be read: " . (\error_get_last()['message'] ?? '')) : $contents;
    }
}
