<?php

declare(strict_types=1);

namespace Weft\Bench\Bus;

use Weft\Bench\BenchmarkException;

/** Where RabbitMQ and PostgreSQL are: in the environment already, or started from this checkout. */
final class Services
{
    private const VARIABLES = ['AMQP_URL', 'DATABASE_URL', 'RABBITMQ_MANAGEMENT_URL'];

    /**
     * @param string $root the repository
     *
     * @return array{AMQP_URL: string, DATABASE_URL: string, RABBITMQ_MANAGEMENT_URL: string}
     */
    public static function urls(string $root): array
    {
        return self::given() ?? self::started($root);
    }

    /** @return array<string, string>|null */
    private static function given(): ?array
    {
        $urls = array_intersect_key(getenv(), array_flip(self::VARIABLES));

        return count($urls) === count(self::VARIABLES) ? $urls : null;
    }

    /** @return array<string, string> */
    private static function started(string $root): array
    {
        passthru(escapeshellarg("$root/scripts/services") . ' up >&2', $code);
        if ($code !== 0) {
            throw new BenchmarkException("scripts/services up exited with code $code");
        }
        $file = (getenv('WEFT_VAR') ?: "$root/var") . '/services/env';
        $urls = [];
        foreach (self::VARIABLES as $name) {
            $urls[$name] = trim((string) shell_exec('. ' . escapeshellarg($file) . " && printf %s \"\$$name\""))
                ?: throw new BenchmarkException("$file does not set $name");
        }

        return $urls;
    }
}
