<?php

declare(strict_types=1);

namespace Weft\Tests\Workers;

use PHPUnit\Framework\TestCase;

final class SignalTest extends TestCase
{
    /** The official images of PHP and some distributions have no pcntl, which defines SIGKILL and the like. */
    public function testTheLibraryUsesNoSignalConstantOfTheExtensionPcntl(): void
    {
        $source = \dirname(__DIR__, 2) . '/src';
        $used = [];
        foreach (new \RecursiveIteratorIterator(new \RecursiveDirectoryIterator($source, \FilesystemIterator::SKIP_DOTS)) as $file) {
            if ($file->getExtension() !== 'php') {
                continue;
            }
            foreach (\PhpToken::tokenize((string) \file_get_contents($file->getPathname())) as $token) {
                if ($token->is(\T_NAME_FULLY_QUALIFIED) && \preg_match('/^\\\\SIG[A-Z]/', $token->text) === 1) {
                    $used[] = \substr($file->getPathname(), \strlen($source) + 1) . ":{$token->line} {$token->text}";
                }
            }
        }

        self::assertSame([], $used);
    }
}
