<?php

declare(strict_types=1);

namespace Weft\Tests\Grpc;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Grpc\Client\Balancing;
use Weft\Grpc\Client\ChannelOptions;
use Weft\Grpc\Client\MethodConfig;
use Weft\Grpc\Client\ServiceConfig;
use Weft\Grpc\Status;

final class ServiceConfigTest extends TestCase
{
    public function testItReadsWhatOtherClientsOfGrpcTake(): void
    {
        $config = ServiceConfig::fromJson(<<<'JSON'
            {
                "loadBalancingConfig": [{"unknown": {}}, {"round_robin": {}}],
                "methodConfig": [
                    {"name": [{"service": "api.Users", "method": "Get"}, {"service": "api.Orders"}], "timeout": "1.5s", "waitForReady": true,
                     "retryPolicy": {"maxAttempts": 7, "initialBackoff": "0.1s", "maxBackoff": "2s", "backoffMultiplier": 1.6, "retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED", 10]}},
                    {"name": [{}], "timeout": "9s"}
                ],
                "retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1}
            }
            JSON);

        self::assertSame(Balancing::RoundRobin, $config->balancing);
        $get = $config->method('/api.Users/Get');
        self::assertSame([1.5, true], [$get->timeout, $get->waitForReady]);
        self::assertSame([Status::Unavailable, Status::ResourceExhausted, Status::Aborted], $get->retry->statuses);
        self::assertSame([5, 0.1, 2.0, 1.6], [$get->retry->maxAttempts, $get->retry->initialBackoff, $get->retry->maxBackoff, $get->retry->multiplier]);
        self::assertSame($get, $config->method('/api.Orders/Anything'));
        self::assertSame([9.0, null], [$config->method('/api.Users/List')->timeout, $config->method('/api.Users/List')->retry]);
        self::assertSame([10.0, 0.1], [$config->throttling->maxTokens, $config->throttling->tokenRatio]);
    }

    public function testTheOlderNameOfABalancingPolicyAndStatusesInAnyCaseAreRead(): void
    {
        foreach (['round_robin', 'ROUND_ROBIN'] as $policy) {
            self::assertSame(Balancing::RoundRobin, ServiceConfig::fromJson("{\"loadBalancingPolicy\": \"$policy\"}")->balancing);
        }
        // The newer entry takes precedence.
        $both = ServiceConfig::fromJson('{"loadBalancingPolicy": "round_robin", "loadBalancingConfig": [{"pick_first": {}}]}');
        self::assertSame(Balancing::PickFirst, $both->balancing);
        $config = ServiceConfig::fromJson(<<<'JSON'
            {"methodConfig": [{"name": [{}], "retryPolicy": {
                "maxAttempts": 2, "initialBackoff": "0.1s", "maxBackoff": "2s", "backoffMultiplier": 1, "retryableStatusCodes": ["unavailable", "Deadline_Exceeded"]
            }}]}
            JSON);
        self::assertSame([Status::Unavailable, Status::DeadlineExceeded], $config->method('/a/B')->retry->statuses);
    }

    public function testAnEmptyOneIsTheDefault(): void
    {
        self::assertEquals(new ServiceConfig(), ServiceConfig::fromJson('{}'));
    }

    public function testATimeoutThatWouldEndEveryCallIsRefused(): void
    {
        foreach ([0.0, -1.0] as $timeout) {
            try {
                new MethodConfig(timeout: $timeout);
                self::fail("$timeout was taken");
            } catch (\ValueError $error) {
                self::assertSame("timeout must be greater than 0, got $timeout", $error->getMessage());
            }
        }
        self::assertSame(0.0, (new ChannelOptions(timeout: 0.0))->timeout);
        $this->expectExceptionMessage('timeout must be at least 0, got -5');
        new ChannelOptions(timeout: -5.0);
    }

    /** @dataProvider wrong */
    #[DataProvider('wrong')]
    public function testAnInvalidServiceConfigIsRefusedWithTheReason(string $json, string $message): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage($message);

        ServiceConfig::fromJson($json);
    }

    /** @return iterable<string, array{string, string}> */
    public static function wrong(): iterable
    {
        $retry = '"maxAttempts": 3, "initialBackoff": "1s", "maxBackoff": "1s", "backoffMultiplier": 2';
        yield 'no JSON' => ['{', 'The service config is not valid JSON: Syntax error'];
        yield 'no object' => ['1', 'The service config must be made of objects, got 1'];
        yield 'unknown policies' => ['{"loadBalancingConfig": [{"grpclb": {}}]}', 'loadBalancingConfig names no supported policy'];
        yield 'an unknown policy' => ['{"loadBalancingPolicy": "grpclb"}', 'loadBalancingPolicy names no supported policy'];
        yield 'a duration' => ['{"methodConfig": [{"name": [{}], "timeout": 1}]}', 'methodConfig[0].timeout must be seconds such as "0.1s", got 1'];
        yield 'a method without a service' => ['{"methodConfig": [{"name": [{"method": "Get"}]}]}', 'methodConfig[0].name must have a service'];
        yield 'a name that is none' => ['{"methodConfig": [{"name": ["api.Users"]}]}', 'methodConfig[0].name must have a service'];
        yield 'one attempt' => ['{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 1}}]}', 'methodConfig[0].retryPolicy.maxAttempts must be at least 2, got 1'];
        yield 'an unknown status' => ["{\"methodConfig\": [{\"name\": [{}], \"retryPolicy\": {" . $retry . ", \"retryableStatusCodes\": [\"OOPS\"]}}]}", 'methodConfig[0].retryPolicy.retryableStatusCodes has no status "OOPS"'];
        yield 'no status' => ["{\"methodConfig\": [{\"name\": [{}], \"retryPolicy\": {" . $retry . ", \"retryableStatusCodes\": []}}]}", 'methodConfig[0].retryPolicy: a retry policy needs at least one status'];
        yield 'a backoff of nothing' => ['{"methodConfig": [{"name": [{}]}, {"name": [{}], "retryPolicy": {' . \str_replace('"maxBackoff": "1s"', '"maxBackoff": "0s"', $retry) . ', "retryableStatusCodes": [14]}}]}', 'The service config is wrong: methodConfig[1].retryPolicy: maxBackoff must be greater than 0, got 0'];
        yield 'a multiplier below 0' => ['{"methodConfig": [{"name": [{}], "retryPolicy": {' . \str_replace('"backoffMultiplier": 2', '"backoffMultiplier": -2', $retry) . ', "retryableStatusCodes": [14]}}]}', 'methodConfig[0].retryPolicy: multiplier must be greater than 0, got -2'];
        yield 'a timeout of nothing' => ['{"methodConfig": [{"name": [{}], "timeout": "0s"}]}', 'The service config is wrong: methodConfig[0]: timeout must be greater than 0, got 0'];
        yield 'too many tokens' => ['{"retryThrottling": {"maxTokens": 2000, "tokenRatio": 1}}', 'The service config is wrong: retryThrottling: maxTokens must be above 0'];
        yield 'a list that is none' => ['{"methodConfig": {"a": 1}}', 'methodConfig must be a list'];
    }
}
