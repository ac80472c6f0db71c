<?php

declare(strict_types=1);

namespace Weft\Cli\Internal;

use Symfony\Component\Console\Formatter\OutputFormatterInterface;
use Symfony\Component\Console\Formatter\OutputFormatterStyleInterface;
use Weft\Internal\Printable;

/**
 * Escapes control characters, then delegates to another formatter.
 *
 * @internal
 */
final class PrintableFormatter implements OutputFormatterInterface
{
    public function __construct(private readonly OutputFormatterInterface $formatter)
    {
    }

    public function setDecorated(bool $decorated): void
    {
        $this->formatter->setDecorated($decorated);
    }

    public function isDecorated(): bool
    {
        return $this->formatter->isDecorated();
    }

    public function setStyle(string $name, OutputFormatterStyleInterface $style): void
    {
        $this->formatter->setStyle($name, $style);
    }

    public function hasStyle(string $name): bool
    {
        return $this->formatter->hasStyle($name);
    }

    public function getStyle(string $name): OutputFormatterStyleInterface
    {
        return $this->formatter->getStyle($name);
    }

    public function format(?string $message): ?string
    {
        return $this->formatter->format($message === null ? null : Printable::text($message));
    }
}
