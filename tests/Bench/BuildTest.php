<?php

declare(strict_types=1);

namespace Weft\Tests\Bench;

use PHPUnit\Framework\TestCase;
use Weft\Bench\Build;
use Weft\Bench\Grpc\Contender;
use Weft\Bench\Versions;

require_once __DIR__ . '/../../bench/autoload.php';

/** Contenders of other languages: what cannot be built is named, and the others go on. */
final class BuildTest extends TestCase
{
    private const PEERS = __DIR__ . '/../../bench/grpc/peers';

    public function testACrateThatCannotBeBuiltIsNamedWithWhatItNeeds(): void
    {
        $directory = sys_get_temp_dir() . '/weft-build-' . bin2hex(random_bytes(6));
        mkdir($directory);
        try {
            $failure = Build::failure(static fn () => Build::cargo($directory, "$directory/target"));
        } finally {
            rmdir($directory);
        }

        self::assertMatchesRegularExpression("~^cargo build .* in $directory exited with code \d+: it needs cargo and what its Cargo.lock names$~", (string) $failure);
    }

    public function testTheVersionOfACrateIsThatOfItsLockFile(): void
    {
        self::assertMatchesRegularExpression('/^\d+\.\d+\.\d+$/', Versions::crate(self::PEERS . '/tonic', 'tonic'));
        self::assertSame('', Versions::crate(self::PEERS . '/tonic', 'no-such-crate'));
        self::assertSame('', Versions::crate(self::PEERS . '/go', 'tonic'));
    }

    public function testEveryContenderOfGrpcHasItsRowOnThePage(): void
    {
        $page = (string) file_get_contents(self::PEERS . '/../README.md');
        foreach (Contender::all('bench', 'out', 'libweft.so') as $contender) {
            self::assertStringContainsString("| {$contender->system} | `", $page);
        }
    }
}
