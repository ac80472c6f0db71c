<?php

declare(strict_types=1);

namespace Weft\Http;

/** Limits of a `multipart/form-data` form, whose body is also limited by `BodyLimits::$bytes`. */
final class FormLimits
{
    public readonly string $directory;

    /**
     * @param int $parts number of values and files, at least 1; more are answered 413. Raise it for forms with many fields
     * @param int $headerBytes bytes of the head of each part, at least 1; more are answered 413. Raise it for very long file names
     * @param int $fieldBytes bytes of all values and names, at least 1, which are kept in memory; more are answered 413. Raise it for long texts
     * @param int $fileBytes bytes of each file, at least 1; more are answered 413. Raise it, and `BodyLimits::$bytes`, for large uploads
     * @param string|null $directory where files are kept until the request has ended; null is the system's for temporary files. Set it where files are
     *     moved, to a directory on the file system of their destination: the move is then a rename
     * @param int $files number of files, at least 1, fields in which none was chosen included; more are answered 413. Raise it for uploads of whole
     *     directories
     */
    public function __construct(
        public readonly int $parts = 1_000,
        public readonly int $headerBytes = 8_192,
        public readonly int $fieldBytes = 1_048_576,
        public readonly int $fileBytes = \PHP_INT_MAX,
        ?string $directory = null,
        public readonly int $files = 20,
    ) {
        foreach (['parts' => $parts, 'files' => $files, 'headerBytes' => $headerBytes, 'fieldBytes' => $fieldBytes, 'fileBytes' => $fileBytes] as $name => $value) {
            if ($value <= 0) {
                throw new \ValueError("$name must be greater than 0, got $value");
            }
        }
        $this->directory = $directory ?? \sys_get_temp_dir();
    }

    /**
     * The limits of applications that are configured for PHP-FPM: `max_input_vars`, `max_file_uploads` and `post_max_size` of php.ini.
     * `upload_max_filesize` is not among them: a file may be as large as the body.
     */
    public static function ofPhp(): self
    {
        $files = \max(1, (int) \ini_get('max_file_uploads'));

        return new self(
            parts: \max(1, (int) \ini_get('max_input_vars')) + $files,
            fieldBytes: BodyLimits::ofPhp()->bytes,
            files: $files,
        );
    }
}
