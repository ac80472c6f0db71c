<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge;

use Weft\Tests\Http\ServerProcess;

/** The processes and directories of a test of an example application, which end with the test. */
trait ServesExample
{
    /** An API whose answers wait until as many requests are there as they ask for. */
    private const QUOTES = <<<'PHP'
        $waiting = [];
        $routes->get('/quote', static function (Request $request) use (&$waiting): Response {
            $tag = $request->queryParameter('tag');
            $group = explode('-', (string) $tag)[0];
            $waiting[$group] = ($waiting[$group] ?? 0) + 1;
            while ($waiting[$group] < (int) $group) {
                delay(0.005);
            }
            return Response::json(['quote' => "about $tag"]);
        });
        $routes->get('/requests', static function () use (&$waiting): Response {
            return Response::json(array_sum($waiting));
        });
        PHP;

    /** @var list<ExampleSite> */
    private array $sites = [];

    /** @var list<string> */
    private array $directories = [];

    /** @var list<ServerProcess> */
    private array $apis = [];

    protected function tearDown(): void
    {
        foreach ($this->apis as $api) {
            $api->stop();
        }
        foreach ($this->sites as $site) {
            $site->stop();
        }
        foreach ($this->directories as $directory) {
            \exec('rm -rf ' . \escapeshellarg($directory));
        }
    }

    private function api(): ServerProcess
    {
        return $this->apis[] = ServerProcess::start(self::QUOTES);
    }

    private function directory(): string
    {
        $directory = \sys_get_temp_dir() . '/weft-example-' . \bin2hex(\random_bytes(6));
        \mkdir($directory);

        return $this->directories[] = $directory;
    }
}
