<?php

declare(strict_types=1);

/*
 * A JSON API: typed handlers, validation, and an OpenAPI document for its clients.
 *
 *     bin/weft run examples/api/app.php --watch
 *     curl -i localhost:8080/books --json '{"title": "Weaving", "genre": "craft", "pages": 320}'
 *     curl localhost:8080/openapi.json
 */

namespace Weft\Examples\Api;

use Weft\App;
use Weft\Http\OpenApi;

require __DIR__ . '/autoload.php';

$app = new App();
$books = new Books();
$app->http('127.0.0.1:' . (\getenv('PORT') ?: '8080'))
    ->openApi('/openapi.json', new OpenApi('Books', '1.0.0', 'A small library.'))
    ->get('/books', $books->search(...))->named('searchBooks')
    ->post('/books', $books->add(...))->named('addBook')
    ->get('/books/{id:\d+}', $books->find(...))->named('findBook')
    ->delete('/books/{id:\d+}', $books->remove(...))->named('removeBook');
$app->run();
