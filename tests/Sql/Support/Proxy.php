<?php

declare(strict_types=1);

namespace Weft\Tests\Sql\Support;

/** Stands between a client and its server, counts round trips and breaks connections. */
final class Proxy
{
    public readonly int $port;

    /** @var resource */
    private $process;

    /** @var resource */
    private $input;

    /** @var resource */
    private $output;

    public function __construct(string $host, int $port)
    {
        $process = \proc_open([\PHP_BINARY, '-n', __DIR__ . '/proxy.php', $host, (string) $port], [['pipe', 'r'], ['pipe', 'w']], $pipes);
        \assert(\is_resource($process));
        [$this->process, $this->input, $this->output] = [$process, ...$pipes];
        $this->port = (int) $this->answer();
    }

    /** How often the client has spoken and waited for the server since this was asked last. */
    public function trips(): int
    {
        return (int) $this->ask('trips');
    }

    /** Closes every connection, as a server that dies. */
    public function cut(): void
    {
        $this->ask('cut');
    }

    /** Closes every connection and refuses new ones, as a server that is down. */
    public function goAway(): void
    {
        $this->ask('away');
    }

    public function comeBack(): void
    {
        $this->ask('back');
    }

    /** From now on the server's words get lost. */
    public function hold(): void
    {
        $this->ask('hold');
    }

    /** Ends {@see hold()}: what was kept back arrives. */
    public function release(): void
    {
        $this->ask('release');
    }

    /** The round trips, since {@see trips()} was called last, of the open connection that has made the fewest. */
    public function leastTrips(): int
    {
        return (int) $this->ask('least');
    }

    /** How many connections it has accepted. */
    public function accepted(): int
    {
        return (int) $this->ask('accepted');
    }

    /** How many bytes it has had from the server. */
    public function received(): int
    {
        return (int) $this->ask('received');
    }

    /** From now on a round trip takes so long at least, 0 to 1. */
    public function delay(float $seconds): void
    {
        $this->ask("delay $seconds");
    }

    /** Says something to every client in the name of the server, which must not be speaking. */
    public function say(string $bytes): void
    {
        $this->ask('say ' . \bin2hex($bytes));
    }

    public function stop(): void
    {
        \fclose($this->input);
        \proc_close($this->process);
    }

    private function ask(string $command): string
    {
        \fwrite($this->input, "$command\n");

        return $this->answer();
    }

    private function answer(): string
    {
        $answer = \fgets($this->output);

        return $answer === false ? throw new \RuntimeException('the proxy has ended') : \trim($answer);
    }
}
