<?php

declare(strict_types=1);

namespace Weft\Tests\Bench\Http;

use PHPUnit\Framework\TestCase;
use Weft\Bench\Http\Contender;
use Weft\Bench\Http\Contenders;

require_once __DIR__ . '/../../../bench/autoload.php';

final class ContendersTest extends TestCase
{
    private const PEERS = ['swoole', 'roadrunner', 'frankenphp'];

    public function testPeersThatTheEnvironmentDoesNotNameAreNoContenders(): void
    {
        self::assertSame([], array_intersect(self::PEERS, self::systems(null, null, null)));
    }

    public function testPeersThatTheEnvironmentNamesAreContenders(): void
    {
        self::assertSame(self::PEERS, array_values(array_intersect(self::systems('/opt/swoole.so', '/opt/rr', '/opt/frankenphp'), self::PEERS)));
    }

    /** @return list<string> */
    private static function systems(?string $swoole, ?string $roadRunner, ?string $frankenPhp): array
    {
        return array_map(static fn (Contender $contender): string => $contender->system, Contenders::all('/bench/http', '/out', '/libweft.so', $swoole, $roadRunner, $frankenPhp));
    }
}
