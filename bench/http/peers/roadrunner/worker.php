<?php

declare(strict_types=1);

// A worker of RoadRunner. It speaks to the server without PSR-7 between, which its documentation has for the least overhead.

use Spiral\RoadRunner\Http\HttpWorker;
use Spiral\RoadRunner\Worker;

require getenv('ROADRUNNER_AUTOLOAD');
require __DIR__ . '/../../answer.php';

$worker = new HttpWorker(Worker::create());
while (($request = $worker->waitRequest()) !== null) {
    try {
        $path = (string) parse_url($request->uri, PHP_URL_PATH);
        // RoadRunner runs no middleware, so not that of files either, for HTTP/2 in clear text.
        [$status, $type, $content] = $path === '/static/file.bin'
            ? [200, 'application/octet-stream', (string) file_get_contents(getenv('STATIC_DIRECTORY') . '/file.bin')]
            : answer($path, $request->query);
        $worker->respond($status, $content, ['Content-Type' => [$type]]);
    } catch (Throwable $failure) {
        $worker->getWorker()->error((string) $failure);
    }
}
