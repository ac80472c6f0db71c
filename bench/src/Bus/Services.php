<?php

declare(strict_types=1);

namespace Weft\Bench\Bus;

use Weft\Bench\BenchmarkException;

/** Where RabbitMQ and PostgreSQL are: in the environment already, or started from this checkout. */
final class Services
{
    private const VARIABLES = ['AMQP_URL', 'DATABASE_URL', 'RABBITMQ_MANAGEMENT_URL'];
    private const PIDS = ['RABBITMQ_PID', 'POSTGRES_PID'];

    /**
     * @param string $root the repository
     *
     * The process ids are there when scripts/services started the servers.
     *
     * @return array{AMQP_URL: string, DATABASE_URL: string, RABBITMQ_MANAGEMENT_URL: string, RABBITMQ_PID?: string, POSTGRES_PID?: string}
     */
    public static function variables(string $root): array
    {
        return self::given() ?? self::started($root);
    }

    /** @return array<string, string>|null */
    private static function given(): ?array
    {
        $given = array_intersect_key(getenv(), array_flip([...self::VARIABLES, ...self::PIDS]));

        return array_diff(self::VARIABLES, array_keys($given)) === [] ? $given : null;
    }

    /** @return array<string, string> */
    private static function started(string $root): array
    {
        passthru(escapeshellarg("$root/scripts/services") . ' up >&2', $code);
        if ($code !== 0) {
            throw new BenchmarkException("scripts/services up exited with code $code");
        }
        $file = (getenv('WEFT_VAR') ?: "$root/var") . '/services/env';
        $variables = [];
        foreach ([...self::VARIABLES, ...self::PIDS] as $name) {
            $variables[$name] = trim((string) shell_exec('. ' . escapeshellarg($file) . " && printf %s \"\$$name\""))
                ?: throw new BenchmarkException("$file does not set $name");
        }

        return $variables;
    }
}
