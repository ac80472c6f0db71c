<?php

declare(strict_types=1);

namespace Weft\Tests\Cli;

use PHPUnit\Framework\TestCase;
use Weft\Bench\HttpAnswer;

require_once __DIR__ . '/../../bench/autoload.php';

final class EndpointTest extends TestCase
{
    public function testMetricsAreAnsweredWhilePhpIsStuck(): void
    {
        $app = new Application('delay(0.01); delay(0.01); Worker::ready(); Handler::blocks();');
        $run = new Supervised($app->file, ['--hang-timeout=0', '--metrics=127.0.0.1:0']);
        $address = $run->wait('metrics')['address'];
        $run->wait('is ready');
        [$status, $metrics] = self::get("http://$address/metrics");

        self::assertSame(200, $status);
        self::assertMatchesRegularExpression('/^weft_loop_lag_seconds_count\{worker="1"\} [1-9]/m', $metrics);
        self::assertMatchesRegularExpression('/^weft_worker_starts_total 1$/m', $metrics);
        self::assertMatchesRegularExpression('/^# TYPE weft_workers gauge$/m', $metrics);
    }

    public function testReadinessFollowsTheWorkers(): void
    {
        $app = new Application('Handler::waitsFor("go"); Worker::untilStopped(); Handler::waitsFor("end");');
        $run = new Supervised($app->file, ['--metrics=127.0.0.1:0']);
        $address = $run->wait('metrics')['address'];
        $run->wait('started');

        self::assertSame([503, "0 of 1 workers are ready\n"], self::until(503, "http://$address/ready", '0 of 1'));
        self::assertSame(200, self::get("http://$address/live")[0]);
        \touch("$app->directory/go");
        $run->wait('is ready');
        self::assertSame([200, "1 of 1 workers are ready\n"], self::until(200, "http://$address/ready", '1 of 1'));
        $run->signal(\SIGTERM);
        self::assertSame([503, "0 of 1 workers are ready, stopping\n"], self::until(503, "http://$address/ready", 'stopping'));
        \touch("$app->directory/end");
        self::assertSame(0, $run->end());
    }

    public function testOtherPathsAndMethodsAreRefused(): void
    {
        $app = Application::idle();
        $run = new Supervised($app->file, ['--metrics=127.0.0.1:0']);
        $address = $run->wait('metrics')['address'];

        self::assertSame(404, self::get("http://$address/")[0]);
        self::assertSame(405, self::get("http://$address/metrics", 'POST')[0]);
    }

    public function testSystemdHearsOfTheLifeOfTheService(): void
    {
        $app = Application::idle();
        $path = "$app->directory/notify.sock";
        $server = \stream_socket_server("udg://$path", $code, $error, \STREAM_SERVER_BIND);
        \stream_set_timeout($server, 60);
        $run = new Supervised($app->file, [], ['NOTIFY_SOCKET' => $path, 'WATCHDOG_USEC' => '400000']);
        $heard = '';
        $listen = static function (string $word) use ($server, &$heard): void {
            while (!\str_contains($heard, $word)) {
                $text = \fread($server, 4096);
                self::assertNotSame('', (string) $text, "systemd was not told $word, only:\n$heard");
                $heard .= "$text\n";
            }
        };
        $listen("READY=1\nMAINPID={$run->pid()}\n");
        $listen('WATCHDOG=1');
        $heard = '';
        $run->signal(\SIGHUP);
        $listen('RELOADING=1');
        $listen('READY=1');
        $run->signal(\SIGTERM);
        $listen('STOPPING=1');

        self::assertSame(0, $run->end());
    }

    /** @return array{int, string} status and body */
    private static function get(string $url, string $method = 'GET'): array
    {
        $answer = HttpAnswer::of($url, ['method' => $method, 'timeout' => 60]);

        return [$answer->status, (string) $answer->body];
    }

    /** @return array{int, string} the first answer that contains `$text`, or the last one */
    private static function until(int $status, string $url, string $text): array
    {
        $deadline = \hrtime(true) / 1e9 + 60;
        do {
            $answer = self::get($url);
        } while (!\str_contains($answer[1], $text) && \hrtime(true) / 1e9 < $deadline);

        return $answer;
    }
}
