<?php

declare(strict_types=1);

namespace Weft\Http;

use Weft\Http\Internal\FileName;
use Weft\Native\HttpUpload;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Internal\WaitsFor;

/** An uploaded file. It is deleted when the request and this object are gone, unless it was moved. */
final class Upload
{
    /** The file name sent by the client, sanitized: without a path, leading dots or invisible characters, never empty. */
    public readonly string $name;
    /** The media type claimed by the client; not verified. */
    public readonly ?string $type;
    /** In bytes. */
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

    /** The path of the file. */
    public function path(): string
    {
        return $this->movedTo ?? $this->native->path();
    }

    /**
     * Moves the file, replacing an existing one, with the permissions of a new file. Waits for the disk.
     *
     * @throws UploadException the file stays where it is
     * @throws \Error the file was already moved
     */
    #[WaitsFor('the move of an uploaded file')]
    public function moveTo(string $path): void
    {
        if ($this->movedTo !== null) {
            throw new \Error("The upload \"$this->name\" was moved to $this->movedTo before");
        }
        Scheduler::await($this->native->moveTo($path));
        $this->movedTo = $path;
        \chmod($path, 0o666 & ~\umask());
    }

    /** The whole contents, in memory. */
    public function contents(): string
    {
        $contents = @\file_get_contents($this->path());

        return $contents === false ? throw new UploadException("{$this->path()} cannot be read: " . (\error_get_last()['message'] ?? '')) : $contents;
    }
}
