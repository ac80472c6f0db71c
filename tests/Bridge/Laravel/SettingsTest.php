<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Laravel;

use PHPUnit\Framework\TestCase;
use Weft\Tests\Timing;

/** Settings that Laravel and Carbon keep in static properties belong to the request that changes them. */
final class SettingsTest extends TestCase
{
    use RequiresLaravel;
    use ServesState;

    private function serve(int $applications): void
    {
        $this->requireLaravel();
        $this->serveState(['APPLICATIONS' => (string) $applications]);
    }

    public function testWhatARequestSetsIsNotSeenByOneThatRunsMeanwhile(): void
    {
        $this->serve(applications: 2);
        $before = self::settingsIn($this->send('/settings'));
        $changing = $this->send('/settings?change=1');
        Timing::until(fn(): bool => \is_file("$this->directory/changed"), 'the settings to change');

        self::assertSame($before, self::settingsIn($this->send('/settings')));
        \touch("$this->directory/released");
        self::assertNoneIsTheSame($before, self::settingsIn($changing));
    }

    public function testWhatARequestSetsIsPutBackForTheNextOneOfItsApplication(): void
    {
        $this->serve(applications: 1);
        \touch("$this->directory/released");
        $before = self::settingsIn($this->send('/settings'));
        self::assertNoneIsTheSame($before, self::settingsIn($this->send('/settings?change=1')));

        // A macro is code, and stays; Carbon 3 has it in the object with its settings.
        self::assertSame(\array_replace($before, ['macro' => isset($before['first day'])]), self::settingsIn($this->send('/settings')));
    }

    /**
     * @param array<string, mixed> $before
     * @param array<string, mixed> $changed
     */
    private static function assertNoneIsTheSame(array $before, array $changed): void
    {
        self::assertSame([], \array_keys(\array_filter($before, static fn(mixed $value, string $name): bool => $value === $changed[$name], \ARRAY_FILTER_USE_BOTH)));
    }

    /** @return resource */
    private function send(string $path)
    {
        $socket = \stream_socket_client("tcp://$this->address", $code, $message, Timing::DEADLINE) ?: throw new \RuntimeException($message);
        \stream_set_timeout($socket, (int) Timing::DEADLINE);
        \fwrite($socket, "GET $path HTTP/1.1\r\nHost: $this->address\r\nConnection: close\r\n\r\n");

        return $socket;
    }

    /**
     * @param resource $socket
     *
     * @return array<string, mixed>
     */
    private static function settingsIn($socket): array
    {
        $answer = (string) \stream_get_contents($socket);
        $settings = \json_decode(\explode("\r\n\r\n", $answer, 2)[1] ?? '', true);
        self::assertIsArray($settings, $answer);

        return $settings;
    }
}
