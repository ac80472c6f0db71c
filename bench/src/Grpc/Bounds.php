<?php

declare(strict_types=1);

namespace Weft\Bench\Grpc;

use Weft\Bench\BenchmarkException;
use Weft\Bench\Build;
use Weft\Bench\Chaos\Proxy;
use Weft\Bench\CommandLine;
use Weft\Bench\Cores;
use Weft\Bench\DiskFlush;
use Weft\Bench\Load\H2load;
use Weft\Bench\Load\IdleConnections;
use Weft\Bench\Load\Load;
use Weft\Bench\Load\Tool;
use Weft\Bench\Machine;
use Weft\Bench\Spread;
use Weft\Bench\Versions;

/** The limits of one server of Weft: streams on a connection, its tail under load, long calls, distance, idle connections, time. */
final class Bounds
{
    public const USAGE = <<<'USAGE'
        usage: bench/grpc/bounds [OPTION…]

          --seconds      of each load, 5
          --messages     of one call, each way, 1000000
          --bytes        of one call to and from a server 50 ms away, 268435456
          --connections  that are open and idle, 10000: `ulimit -n` must allow them in both processes
          --soak         seconds of load in which memory must not grow, 60
          --only         of streams tail talk link idle soak; all of them by default
          --extension    libweft.so, target/release/libweft.so
          --out          bench/out/grpc-bounds.json

        USAGE;
    public const PARTS = ['streams', 'tail', 'talk', 'link', 'idle', 'soak'];

    private const LINK_SECONDS = 0.025;
    private const WINDOWS = [262_144, 16_777_216];
    private const TAIL_CONNECTIONS = 50;
    private const TAIL_STREAMS = 20;
    private const TAIL_SHARE = 0.7;

    private readonly string $bench;
    private readonly string $out;
    private readonly string $extension;

    /** @param string $root the repository */
    public function __construct(private readonly string $root, private readonly CommandLine $line)
    {
        $this->bench = "$root/bench/grpc";
        $this->out = "$root/bench/out";
        $this->extension = $line->text('extension');
    }

    /** @param list<string> $arguments */
    public static function parse(array $arguments, string $root): CommandLine
    {
        return CommandLine::parse($arguments, [
            'seconds' => '5', 'messages' => '1000000', 'bytes' => '268435456', 'connections' => '10000', 'soak' => '60', 'only' => implode(',', self::PARTS),
            'extension' => "$root/target/release/libweft.so", 'out' => "$root/bench/out/grpc-bounds.json",
        ]);
    }

    public function run(): BoundsResults
    {
        @mkdir($this->out, recursive: true);
        Machine::warnWhenBusy();
        $parts = $this->line->names('only');
        foreach (array_diff($parts, self::PARTS) as $part) {
            throw new BenchmarkException("there is no part '$part', there are: " . implode(' ', self::PARTS));
        }
        $facts = $failed = [];
        foreach ($parts as $number => $part) {
            $left = array_slice($parts, $number + 1);
            fwrite(STDERR, $part . ($left === [] ? '' : '; then ' . implode(', ', $left)) . "\n");
            try {
                $facts[$part] = $this->$part();
            } catch (BenchmarkException $failure) {
                fwrite(STDERR, "FAILED: {$failure->getMessage()}\n");
                $failed[$part] = $failure->getMessage();
            }
        }
        $versions = ['weft' => Versions::weft($this->root), 'php' => PHP_VERSION, 'grpc-go' => Versions::module("{$this->bench}/peers/go/go.mod", 'google.golang.org/grpc'), 'h2load' => Versions::of('h2load --version')];
        $results = new BoundsResults(Machine::describe(Spread::of([DiskFlush::microseconds($this->out)])), $versions, $facts, $failed);
        $results->save($this->line->text('out'));

        return $results;
    }

    /** @return list<array<string, mixed>> how long calls take by the number of streams they share a connection with */
    private function streams(): array
    {
        return $this->serving(function (Contender $contender): array {
            $this->load($contender, 1, 1, 1);

            return array_map(fn (int $streams): array => ['streams' => $streams] + self::fields($this->load($contender, 1, $streams, $this->line->positive('seconds'))), [1, 8, 64]);
        });
    }

    /** @return list<array<string, mixed>> how long calls take at a part of the rate there can be, and beside it those of grpc-go */
    private function tail(): array
    {
        $go = new Contender('go', ["{$this->out}/grpc-go"], []);
        $go->unavailable = Build::failure(fn () => Build::go("{$this->bench}/peers/go", "{$this->out}/grpc-go"));
        $contenders = array_filter([Contender::weft($this->bench, $this->extension), $go], static fn (Contender $contender): bool => $contender->unavailable === null);

        return array_values(array_map(fn (Contender $contender): array => ['system' => $contender->system] + $this->measured($contender, $this->tailOf(...)), $contenders));
    }

    /** @return array<string, mixed> */
    private function tailOf(Contender $contender): array
    {
        $this->load($contender, self::TAIL_CONNECTIONS, self::TAIL_STREAMS, 1);
        $full = $this->load($contender, self::TAIL_CONNECTIONS, self::TAIL_STREAMS, $this->line->positive('seconds'));
        $part = $this->load($contender, self::TAIL_CONNECTIONS, self::TAIL_STREAMS, $this->line->positive('seconds'), $full->perSecond() * self::TAIL_SHARE);

        return ['full_rps' => round($full->perSecond(), 1), 'at_a_time' => self::TAIL_CONNECTIONS * self::TAIL_STREAMS] + self::fields($part);
    }

    /** @return array<string, mixed> a call in which both sides stream */
    private function talk(): array
    {
        return $this->serving(function (Contender $contender): array {
            $messages = $this->line->positive('messages');
            $talk = fn (int $messages): array => json_decode($this->php($contender->port(), 'talk.php', (string) $messages), true);
            $talk(max(1, intdiv($messages, 10)));
            $before = $contender->server($this->out)->tree->residentMib();

            return $talk($messages) + ['server_before_mib' => round($before, 1), 'server_after_mib' => round($contender->server($this->out)->tree->residentMib(), 1)];
        });
    }

    /** @return list<array<string, mixed>> bytes in one call through a proxy that holds everything back */
    private function link(): array
    {
        $bytes = $this->line->positive('bytes');
        $rows = [];
        foreach (self::WINDOWS as $window) {
            $rows[] = $this->serving(function (Contender $contender) use ($bytes, $window): array {
                $row = ['round_trip_ms' => self::LINK_SECONDS * 2_000, 'stream_window' => $window];
                foreach (['near' => 0.0, 'far' => self::LINK_SECONDS] as $distance => $seconds) {
                    // A window that is small for the distance takes a second for five megabytes.
                    $some = $distance === 'far' && $window < 1 << 20 ? intdiv($bytes, 16) : $bytes;
                    $proxy = new Proxy($contender->port());
                    $proxy->slow($seconds);
                    foreach (['upload', 'download'] as $direction) {
                        $row["{$distance}_{$direction}_mb_s"] = round($some / 1e6 / (float) $this->php($proxy->port, 'bulk.php', $direction, (string) $some, (string) $window), 1);
                    }
                    $proxy->stop();
                }

                return $row;
            }, "--stream-window=$window");
        }

        return $rows;
    }

    /** @return array<string, mixed> */
    private function idle(): array
    {
        return $this->serving(function (Contender $contender): array {
            $count = $this->line->positive('connections');
            $tree = $contender->server($this->out)->tree;
            IdleConnections::openGrpc($contender->port(), Call::Get->path(), 100)->close();
            $before = $tree->residentMib();
            $idle = IdleConnections::openGrpc($contender->port(), Call::Get->path(), $count);
            sleep(1);
            $each = ($tree->residentMib() - $before) * 1024 / $count;
            $closed = $idle->closedByServer();
            $closed === 0 || throw new BenchmarkException("the server has closed $closed of $count idle connections");

            return ['connections' => $count, 'kib_each' => round($each, 1)];
        });
    }

    /** @return array<string, mixed> memory while calls of every kind and new connections come */
    private function soak(): array
    {
        return $this->serving(function (Contender $contender): array {
            $tree = $contender->server($this->out)->tree;
            $end = microtime(true) + $this->line->positive('soak');
            $calls = 0;
            $resident = [];
            do {
                foreach (Call::cases() as $call) {
                    $calls += $this->load($contender, 20, 5, 1, call: $call)->requests;
                }
                $this->php($contender->port(), 'talk.php', '2000');
                IdleConnections::openGrpc($contender->port(), Call::Get->path(), 50)->close();
                $resident[] = round($tree->residentMib(), 1);
            } while (microtime(true) < $end);

            return ['seconds' => $this->line->positive('soak'), 'calls' => $calls, 'resident_mib' => $resident];
        });
    }

    /**
     * @template T
     *
     * @param \Closure(Contender): T $measure
     *
     * @return T
     */
    private function serving(\Closure $measure, string ...$arguments): mixed
    {
        return $this->measured(Contender::weft($this->bench, $this->extension, ...$arguments), $measure);
    }

    /**
     * @template T
     *
     * @param \Closure(Contender): T $measure
     *
     * @return T
     */
    private function measured(Contender $contender, \Closure $measure): mixed
    {
        try {
            $contender->server($this->out);

            return $measure($contender);
        } finally {
            $contender->stop();
        }
    }

    /** @param float|null $perSecond calls on all connections; as many as there can be by default */
    private function load(Contender $contender, int $connections, int $streams, int $seconds, ?float $perSecond = null, Call $call = Call::Get): Load
    {
        $body = "{$this->out}/{$call->value}.bin";
        file_put_contents($body, $call->frame());
        $options = ["--data=$body", '--header=content-type: application/grpc', '--header=te: trailers'];
        $url = "http://127.0.0.1:{$contender->port()}{$call->path()}";
        $load = $perSecond === null
            ? H2load::run($url, $connections, $seconds, Cores::load(), $streams, $options)
            : H2load::paced($url, $connections, $seconds, $perSecond, Cores::load(), $streams, $options);
        $load->errors === 0 || throw new BenchmarkException("{$load->errors} of {$load->requests} calls failed");

        return $load;
    }

    private function php(int $port, string $program, string ...$arguments): string
    {
        $command = [...Cores::load(), 'env', "PORT=$port", PHP_BINARY, '-d', "extension={$this->extension}", "{$this->bench}/weft/$program", ...$arguments];

        return trim(Tool::output($command, 600.0));
    }

    /** @return array<string, mixed> */
    private static function fields(Load $load): array
    {
        return ['rps' => round($load->perSecond(), 1), 'latency_ms' => $load->latency->toArray()];
    }
}
