<?php

declare(strict_types=1);

// The HTTP API and the worker, in one process: vendor/bin/weft run app.php --watch

use App\Greet;
use App\NewGreeting;
use Weft\App;
use Weft\Http\Body;
use Weft\Http\HttpException;
use Weft\Http\Response;

$bus = require __DIR__ . '/bus.php';
$database->execute('CREATE TABLE IF NOT EXISTS greetings (id VARCHAR(32) PRIMARY KEY, text VARCHAR(200) NOT NULL)');

// A container has 10 s to stop, and its workers have 8 s (see the Dockerfile).
$app = new App(grace: 5.0);
$app->http(getenv('LISTEN') ?: '127.0.0.1:8080')
    ->get('/', static fn(): Response => Response::text("POST /greetings {\"name\": \"Ada\"}, then GET /greetings\n"))
    ->post('/greetings', static function (#[Body] NewGreeting $greeting) use ($bus): Response {
        $greeting->name !== '' || throw new HttpException(422, 'The name is empty');
        $bus->send(new Greet(bin2hex(random_bytes(16)), $greeting->name));

        return Response::accepted();
    })
    ->get('/greetings', static fn(): Response => Response::json($database->execute('SELECT text FROM greetings ORDER BY text')->column()));
$app->consume($bus, 'greetings');
$app->run();
