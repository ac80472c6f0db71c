<?php

declare(strict_types=1);

/*
 * A JSON API: typed handlers, validation, login, and an OpenAPI document for its clients.
 *
 *     TOKEN=secret bin/weft run examples/api/app.php --watch
 *     curl -i localhost:8080/books --oauth2-bearer secret --json '{"title": "Weaving", "genre": "craft", "pages": 320}'
 *     curl localhost:8080/books
 *     curl localhost:8080/openapi.json
 *
 * Browsers log in with a session: POST /login with {"name": "ada", "password": …}, the password being PASSWORD.
 */

namespace Weft\Examples\Api;

use Weft\App;
use Weft\Http\Csrf;
use Weft\Http\OpenApi;
use Weft\Http\Router;
use Weft\Http\Sessions;
use Weft\Http\Sessions\FileStore;

require __DIR__ . '/autoload.php';

$books = new Books();
$users = new Users(\getenv('PASSWORD') ?: \bin2hex(\random_bytes(8)), \getenv('TOKEN') ?: \bin2hex(\random_bytes(16)));
$sessions = new FileStore(\sys_get_temp_dir() . '/weft-api-sessions');

$app = new App();
$app->http('127.0.0.1:' . (\getenv('PORT') ?: '8080'))
    ->use(new Sessions($sessions, secure: \getenv('WEFT_ENV') !== 'development'), new Csrf())
    ->openApi('/openapi.json', new OpenApi('Books', '1.0.0', 'A small library.'))
    ->post('/login', $users->login(...))->named('login')
    ->post('/logout', $users->logout(...))->named('logout')
    ->get('/books', $books->search(...))->named('searchBooks')
    ->get('/books/{id:\d+}', $books->find(...))->named('findBook')
    ->group('', static fn(Router $private) => $private
        ->post('/books', $books->add(...))->named('addBook')
        ->delete('/books/{id:\d+}', $books->remove(...))->named('removeBook'), new Authentication($users));
$app->run();
