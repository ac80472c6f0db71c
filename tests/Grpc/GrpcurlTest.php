<?php

declare(strict_types=1);

namespace Weft\Tests\Grpc;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

/** grpcurl knows nothing of the example's service but what reflection tells it. */
final class GrpcurlTest extends TestCase
{
    private static GrpcProcess $server;

    public static function setUpBeforeClass(): void
    {
        self::$server = GrpcProcess::launch([__DIR__ . '/Fixtures/users.php']);
    }

    public static function tearDownAfterClass(): void
    {
        self::$server->stop();
    }

    /**
     * @param list<string> $options
     * @param list<string> $what after the address
     */
    private static function grpcurl(array $options, array $what): string
    {
        [$exit, $output] = Tool::run('grpcurl', ['-plaintext', ...$options, self::$server->address, ...$what]);
        self::assertSame(0, $exit, $output);

        return $output;
    }

    public function testItListsTheServices(): void
    {
        self::assertSame(
            "api.Users\ngrpc.health.v1.Health\ngrpc.reflection.v1.ServerReflection\ngrpc.reflection.v1alpha.ServerReflection\n",
            self::grpcurl([], ['list']),
        );
        self::assertSame("api.Users.Get\napi.Users.Import\napi.Users.List\napi.Users.Lookup\n", self::grpcurl([], ['list', 'api.Users']));
    }

    /**
     * Each version alone: grpcurl asks for the other one where a server does not know the first.
     *
     * @dataProvider versions
     */
    #[DataProvider('versions')]
    public function testItCallsByEitherVersionOfReflection(string $version, string $other): void
    {
        $server = GrpcProcess::launch([__DIR__ . '/Fixtures/users.php', $other]);

        [$exit, $output] = Tool::run('grpcurl', ['-plaintext', '-d', '{"id": 228}', $server->address, 'api.Users/Get']);
        [, $described] = Tool::run('grpcurl', ['-plaintext', $server->address, 'describe', 'api.Users.Lookup']);
        $said = str_contains($server->log(), "answered /grpc.reflection.$version.ServerReflection/ServerReflectionInfo\n");
        $server->stop();

        self::assertSame(0, $exit, $output);
        self::assertSame('228', json_decode($output, true)['id']);
        self::assertStringContainsString('rpc Lookup ( stream .api.GetUserRequest ) returns ( stream .api.User );', $described);
        self::assertTrue($said);
    }

    /** @return iterable<string, array{string, string}> */
    public static function versions(): iterable
    {
        yield 'v1' => ['v1', 'v1alpha'];
        yield 'v1alpha' => ['v1alpha', 'v1'];
    }

    public function testItDescribesServicesAndMessages(): void
    {
        self::assertStringContainsString('rpc Lookup ( stream .api.GetUserRequest ) returns ( stream .api.User );', self::grpcurl([], ['describe', 'api.Users']));
        self::assertStringContainsString('double rating = 4;', self::grpcurl([], ['describe', 'api.User']));
    }

    public function testItCallsAMethodOfEveryKind(): void
    {
        $user = ['id' => '228', 'email' => 'dmitry.k@test.tld', 'name' => 'Dmitry K.', 'rating' => 228.53];
        self::assertSame($user, json_decode(self::grpcurl(['-d', '{"id": 228}'], ['api.Users/Get']), true));
        self::assertSame(9, substr_count(self::grpcurl([], ['api.Users/List']), '"id"'));
        self::assertSame(['count' => 2], json_decode(self::grpcurl(['-d', '{"id": 1}{"id": 2}'], ['api.Users/Import']), true));
        self::assertSame(2, substr_count(self::grpcurl(['-d', '{"id": 1}{"id": 2}'], ['api.Users/Lookup']), 'Dmitry'));
    }

    public function testItChecksTheHealthOfTheServerAndOfAService(): void
    {
        self::assertStringContainsString('"SERVING"', self::grpcurl([], ['grpc.health.v1.Health/Check']));
        self::assertStringContainsString('"SERVING"', self::grpcurl(['-d', '{"service": "api.Users"}'], ['grpc.health.v1.Health/Check']));
        self::assertStringContainsString('"api.Users"', self::grpcurl([], ['grpc.health.v1.Health/List']));
    }

    public function testAStatusReachesIt(): void
    {
        [$exit, $output] = Tool::run('grpcurl', ['-plaintext', '-d', '{"id": -1}', self::$server->address, 'api.Users/Get']);

        self::assertSame(64 + 3, $exit);
        self::assertStringContainsString('the id of a user is not negative, got -1', $output);
    }
}
