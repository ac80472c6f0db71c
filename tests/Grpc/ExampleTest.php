<?php

declare(strict_types=1);

namespace Weft\Tests\Grpc;

/** examples/users, its client against its service. */
final class ExampleTest extends GrpcTestCase
{
    public function testTheClientOfTheExampleCallsEveryMethod(): void
    {
        $server = GrpcProcess::launch([__DIR__ . '/Fixtures/users.php']);
        try {
            $client = GrpcProcess::launch([\dirname(__DIR__, 2) . '/examples/users/client.php', $server->address]);
            $rest = $client->output();
        } finally {
            $server->stop();
        }

        self::assertSame('get: Dmitry K. <dmitry.k@test.tld> 228.53', $client->address);
        $list = implode('', array_map(static fn(int $i): string => "list: User $i\n", range(0, 9)));
        self::assertSame("{$list}import: 3\nlookup: 1\nlookup: 2\nget: InvalidArgument, the id of a user is not negative, got -1\n", $rest);
    }
}
