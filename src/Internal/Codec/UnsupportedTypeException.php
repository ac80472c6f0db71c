<?php

declare(strict_types=1);

namespace Weft\Internal\Codec;

/**
 * The type of a property cannot be encoded; the message completes "property $x …".
 *
 * @internal
 */
final class UnsupportedTypeException extends \Exception
{
    /** @param bool $needsElements whether documented elements of an array would make it supported */
    public function __construct(string $message, private readonly bool $needsElements = false)
    {
        parent::__construct($message);
    }

    /** @param string $tag that documents the elements, and where it belongs */
    public function withAdvice(string $tag): string
    {
        return $this->getMessage() . ($this->needsElements ? "; declare its elements with {$tag}" : '');
    }
}
