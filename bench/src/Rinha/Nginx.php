<?php

declare(strict_types=1);

namespace Weft\Bench\Rinha;

use Weft\Bench\BenchmarkException;

/** The load balancer with the configuration of examples/rinha/nginx.conf, on other ports. */
final class Nginx
{
    /**
     * @param string $configuration file that uses the ports 9997, 9998 and 9999
     * @param string $directory where it may write
     * @param array<int, int> $ports the port to use for each of those
     */
    public function __construct(string $configuration, private readonly string $directory, array $ports)
    {
        @mkdir($directory);
        $text = file_get_contents($configuration);
        foreach ($ports as $from => $to) {
            str_contains($text, "127.0.0.1:$from") || throw new BenchmarkException("$configuration does not use 127.0.0.1:$from");
            $text = str_replace("127.0.0.1:$from", "127.0.0.1:$to", $text);
        }
        $account = posix_getpwuid(posix_geteuid())['name'];
        file_put_contents("$directory/nginx.conf", "daemon off;\npid $directory/nginx.pid;\nuser $account;\n$text");
    }

    /** @return list<string> runs it in the foreground */
    public function command(): array
    {
        return ['nginx', '-p', $this->directory, '-e', 'stderr', '-c', "{$this->directory}/nginx.conf"];
    }
}
