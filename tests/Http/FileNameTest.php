<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use PHPUnit\Framework\TestCase;
use Weft\Http\Internal\FileName;

final class FileNameTest extends TestCase
{
    public function testTheNameOfAnyUploadIsSafe(): void
    {
        $random = new \Random\Randomizer(new \Random\Engine\Mt19937(3));
        $pieces = ['/', '\\', '..', '.', ' ', "\0", "\n", 'a', 'ä', '😀', "\xff", "\u{202e}", "\u{2028}", ':', '"', '*', '.txt', str_repeat('long', 40), str_repeat('ü', 60)];
        for ($round = 0; $round < 5_000; $round++) {
            $name = '';
            for ($i = $random->getInt(0, 10); $i > 0; $i--) {
                $name .= $pieces[$random->getInt(0, \count($pieces) - 1)];
            }

            $safe = FileName::safe($name);

            self::assertMatchesRegularExpression('/^[^\/\\\\\p{C}<>:"|?*]+$/Du', $safe, bin2hex($name));
            self::assertDoesNotMatchRegularExpression('/^[. ]|[. ]$/D', $safe, bin2hex($name));
            self::assertLessThanOrEqual(255, \strlen($safe));
            self::assertSame($safe, FileName::safe($safe));
        }
    }

    public function testAnAttachmentHasANameForOldClientsToo(): void
    {
        self::assertSame('attachment; filename="a b.txt"', FileName::attachment('a b.txt'));
        self::assertSame("attachment; filename=\"a______.txt\"; filename*=UTF-8''a%22%5C%25%E2%82%AC.txt", FileName::attachment('a"\\%€.txt'));
    }
}
