<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Queue;

use Illuminate\Contracts\Foundation\Application;
use Illuminate\Queue\Connectors\ConnectorInterface;
use Weft\Bridge\Internal\Setting;
use Weft\Bridge\Laravel\Internal\Buses;
use Weft\UsageError;

/** Makes connections of `config/queue.php` with the driver `weft`: `['driver' => 'weft', 'bus' => 'amqp://localhost', 'queue' => 'default']`. */
final class WeftConnector implements ConnectorInterface
{
    public function __construct(private readonly Application $application)
    {
    }

    /** @param array<string, mixed> $config */
    public function connect(#[\SensitiveParameter] array $config): WeftQueue
    {
        $dsn = Setting::given($config['bus'] ?? null) ?? Setting::given($this->application->make('config')->get('weft.bus'))
            ?? throw new UsageError('A queue connection with the driver "weft" needs a "bus", such as amqp://localhost or sqlite:/path/to/bus.db');

        return new WeftQueue(new Buses((string) $dsn), (string) ($config['queue'] ?? 'default'), (bool) ($config['after_commit'] ?? false));
    }
}
