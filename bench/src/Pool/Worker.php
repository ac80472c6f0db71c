<?php

declare(strict_types=1);

namespace Weft\Bench\Pool;

use Weft\Http\Limits;
use Weft\Http\Request;
use Weft\Http\Response;
use Weft\Http\Server;

use function Weft\async;
use function Weft\run;
use function Weft\signal;

/** One process of the runner: answers /test and /shutdown until SIGTERM. */
final class Worker
{
    private ?Scenario $scenario = null;

    /** @param \Closure(): void $shutdown ends the whole runner */
    public function __construct(private readonly Settings $settings, private readonly \Closure $shutdown)
    {
    }

    public function run(): void
    {
        run(function (): void {
            $workers = $this->settings->number('server.worker_num');
            $server = new Server($this->answer(...), new Limits(
                connections: (int) ceil($this->settings->number('server.max_connection') / $workers),
                inFlight: $this->settings->number('server.worker_max_concurrency'),
                clientShare: 1.0,
            ));
            $this->scenario = new Scenario($this->settings, $this->connections());
            $server->listen("{$this->settings->text('server.host')}:{$this->settings->number('server.port')}", sharePort: true);
            async($server->run(...));
            signal(SIGTERM, SIGINT);
            $server->stop(5.0);
        });
    }

    private function answer(Request $request): Response
    {
        return match ($request->path()) {
            '/test' => $this->test(),
            '/shutdown' => $this->shutDown(),
            default => new Response(404),
        };
    }

    /** 500 also while there are no connections yet. */
    private function test(): Response
    {
        return new Response($this->scenario?->run() === true ? 200 : 500);
    }

    private function shutDown(): Response
    {
        ($this->shutdown)();

        return Response::noContent();
    }

    private function connections(): Connections
    {
        $url = Dsn::url(
            $this->settings->text('connection.dsn'),
            $this->settings->text('connection.username'),
            $this->settings->text('connection.password'),
        );

        return $this->settings->flag('pool.enabled') ? new Pooled($url, $this->settings) : new Unpooled($url, $this->settings);
    }
}
