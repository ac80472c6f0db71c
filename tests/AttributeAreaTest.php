<?php

declare(strict_types=1);

namespace Weft\Tests;

use PHPUnit\Framework\TestCase;
use Weft\Internal\AttributeArea;

final class AttributeAreaTest extends TestCase
{
    public function testEveryAttributeBelongsToAnArea(): void
    {
        $attributes = [];
        $source = \dirname(__DIR__) . '/src';
        foreach (['Bus', 'EventSourcing', 'Http', 'Validation'] as $package) {
            foreach (new \RecursiveIteratorIterator(new \RecursiveDirectoryIterator("$source/$package", \FilesystemIterator::SKIP_DOTS)) as $file) {
                if (preg_match('/^#\[\\\\Attribute\b/m', (string) file_get_contents((string) $file)) === 1) {
                    $attributes[] = 'Weft' . strtr(substr((string) $file, \strlen($source), -4), '/', '\\');
                }
            }
        }
        $known = array_unique(AttributeArea::all());
        sort($attributes);
        sort($known);

        self::assertSame($attributes, $known);
    }
}
