<?php

declare(strict_types=1);

namespace Weft\Bench\Http;

/** The kinds of request. Every contender serves all of them. */
enum Workload: string
{
    public const BODY_BYTES = 100_000;
    public const FILE_BYTES = 16_384;

    case Hello = 'hello';
    case Json = 'json';
    case Query = 'query';
    case Body = 'body';
    case File = 'static';

    public function path(): string
    {
        return match ($this) {
            self::Query => '/query?id=42',
            self::File => '/static/file.bin',
            default => "/{$this->value}",
        };
    }

    /** Whether this is the right answer, byte for byte; JSON may be spaced and ordered as the contender likes. */
    public function accepts(string $body): bool
    {
        return match ($this) {
            self::Hello => $body === 'Hello, World!',
            self::Json => json_decode($body, true) === ['message' => 'Hello, World!'],
            self::Query => self::isRow42(json_decode($body, true)),
            self::Body => $body === str_repeat('x', self::BODY_BYTES),
            self::File => $body === self::fileContents(),
        };
    }

    /** The same 16 KiB everywhere; not compressible. */
    public static function fileContents(): string
    {
        $block = '';
        for ($i = 0; strlen($block) < self::FILE_BYTES; ++$i) {
            $block .= hash('sha256', (string) $i, true);
        }

        return $block;
    }

    private static function isRow42(mixed $row): bool
    {
        is_array($row) && ksort($row);

        return $row === ['email' => 'name@qwerty.root', 'id' => 42, 'name' => 'name_42'];
    }
}
