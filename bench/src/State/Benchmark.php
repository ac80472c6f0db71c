<?php

declare(strict_types=1);

namespace Weft\Bench\State;

use Weft\Bench\BenchmarkException;
use Weft\Bench\Port;
use Weft\Bench\Server;

/** Sends interleaved requests of many users to an application, and counts those that have seen the state of another. */
final class Benchmark
{
    public const USERS = 64;

    /** Seconds for which a request may wait; it only ends a hang. */
    private const TIMEOUT = 120;

    /** One kernel for all is sent fewer: a tenth of the requests shows that the test can fail. */
    private const SHARED_FRACTION = 10;

    private const EXAMPLES = 3;

    /** @var list<string> the first mismatches of the runs that must have none */
    public array $examples = [];

    /** @var list<string> the first of one shared instance */
    public array $sharedExamples = [];

    public function __construct(private readonly string $root, private readonly Options $options)
    {
    }

    /** @return iterable<array{framework: string, slots: int, requests: int, users: int, mismatches: int, shared_kernel_requests: int, shared_kernel_mismatches: int, per_s: float}> as soon as each is complete */
    public function run(): iterable
    {
        foreach ($this->options->frameworks as $framework) {
            $sharedRequests = max(self::USERS, intdiv($this->options->requests, self::SHARED_FRACTION));
            [$shared] = $this->measured($framework, self::USERS, true, $sharedRequests);
            foreach ($this->options->slots as $slots) {
                [$mismatches, $seconds] = $this->measured($framework, $slots, false, $this->options->requests);
                yield [
                    'framework' => $framework,
                    'slots' => $slots,
                    'requests' => $this->options->requests,
                    'users' => self::USERS,
                    'mismatches' => $mismatches,
                    'shared_kernel_requests' => $sharedRequests,
                    'shared_kernel_mismatches' => $shared,
                    'per_s' => round($this->options->requests / $seconds, 1),
                ];
            }
        }
    }

    /** @return array{int, float} mismatches and seconds */
    private function measured(string $framework, int $slots, bool $isShared, int $requests): array
    {
        $directory = sys_get_temp_dir() . '/weft-state-' . bin2hex(random_bytes(6));
        mkdir("$directory/sessions", recursive: true);
        $port = Port::free();
        $environment = [
            'STATE_VAR' => $directory,
            'STATE_DATABASE' => $this->options->database !== '' ? $this->options->database : "sqlite:///$directory/state.db",
            'STATE_LISTEN' => "127.0.0.1:$port",
            'STATE_SLOTS' => (string) $slots,
            'STATE_SHARED' => $isShared ? '1' : '0',
        ];
        $command = [\PHP_BINARY, '-d', "extension={$this->options->extension}", '-d', 'opcache.enable_cli=1', "$this->root/bench/state/$framework.php"];
        try {
            $server = Server::start($command, $environment, "$directory/server.log", $port, (float) self::TIMEOUT);
            try {
                $from = hrtime(true);
                $mismatches = $this->send("http://127.0.0.1:$port/state", $requests, $isShared);

                return [$mismatches, (hrtime(true) - $from) / 1e9];
            } finally {
                if (!$server->isRunning()) {
                    throw new BenchmarkException("the server has ended:\n" . $server->logTail());
                }
                $server->stop();
            }
        } finally {
            exec('rm -rf ' . escapeshellarg($directory));
        }
    }

    /** Each user sends one request after the other, with cookies, all users at the same time. */
    private function send(string $url, int $requests, bool $isShared): int
    {
        $multi = curl_multi_init();
        $sent = $answered = $mismatches = 0;
        $start = static function (\CurlHandle $curl) use (&$sent, $url, $multi): void {
            curl_setopt($curl, CURLOPT_URL, "$url?n=$sent");
            curl_setopt($curl, CURLOPT_PRIVATE, (string) $sent++);
            curl_multi_add_handle($multi, $curl);
        };
        for ($user = 0; $user < min(self::USERS, $requests); $user++) {
            $curl = curl_init();
            curl_setopt_array($curl, [CURLOPT_RETURNTRANSFER => true, CURLOPT_HEADER => true, CURLOPT_TIMEOUT => self::TIMEOUT, CURLOPT_USERPWD => "user$user:secret", CURLOPT_COOKIEFILE => '']);
            $start($curl);
        }
        while ($answered < $requests) {
            curl_multi_exec($multi, $active);
            while (($done = curl_multi_info_read($multi)) !== false) {
                $curl = $done['handle'];
                $answered++;
                $number = (int) curl_getinfo($curl, CURLINFO_PRIVATE);
                [$isAnswered, $problem] = self::problem((string) curl_multi_getcontent($curl), (int) curl_getinfo($curl, CURLINFO_RESPONSE_CODE), $number);
                if ($problem !== null) {
                    // That one instance for all fails in other ways does not show that the check sees the state of others.
                    $mismatches += $isAnswered || !$isShared ? 1 : 0;
                    if ($isShared && count($this->sharedExamples) < self::EXAMPLES) {
                        $this->sharedExamples[] = "request $number: $problem";
                    } elseif (!$isShared && count($this->examples) < self::EXAMPLES) {
                        $this->examples[] = "request $number: $problem";
                    }
                }
                curl_multi_remove_handle($multi, $curl);
                $sent < $requests && $start($curl);
            }
            $active > 0 && curl_multi_select($multi, 1.0);
        }
        curl_multi_close($multi);

        return $mismatches;
    }

    /** @return array{bool, string|null} whether the check has answered, and what is not the request's own, in the answer or in its header fields */
    private static function problem(string $answer, int $status, int $number): array
    {
        [$head, $body] = explode("\r\n\r\n", $answer, 2) + ['', ''];
        $seen = json_decode($body, true);
        if ($status !== 200 || !is_array($seen) || ($seen['request'] ?? null) !== $number) {
            return [false, "status $status: " . substr(strip_tags($body), 0, 300)];
        }
        if ($seen['mismatches'] !== []) {
            return [true, (string) json_encode($seen['mismatches'])];
        }
        preg_match_all('/^x-state: (.*)\r?$/mi', $head, $fields);

        return [true, array_map(trim(...), $fields[1]) === [(string) $number] ? null : 'the header fields of the answer are ' . json_encode($fields[1])];
    }
}
