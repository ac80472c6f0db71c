<?php

declare(strict_types=1);

/*
 * One instance of the API of the Rinha de Backend 2023 Q3.
 *
 *     PORT=9997 DATABASE_URL=postgres://… php -d extension=…/libweft.so examples/rinha/app.php
 *
 * INSERTS=single stores each person by a statement and a commit of its own. INSERTS=shared lets people that arrive together share
 * both. The default is single.
 *
 * `make rinha` runs two instances behind nginx under the load of the contest.
 */

namespace Weft\Examples\Rinha;

use Weft\App;
use Weft\Sql\Database;
use Weft\Pool\PoolOptions;
use Weft\Sql\Transaction;

require __DIR__ . '/../../autoload.php';
\spl_autoload_register(static function (string $class): void {
    $file = __DIR__ . '/src/' . \substr($class, \strlen(__NAMESPACE__) + 1) . '.php';
    if (\str_starts_with($class, __NAMESPACE__ . '\\') && \is_file($file)) {
        require $file;
    }
});

$setting = static function (string $name): string {
    $value = \getenv($name);
    if ($value === false || $value === '') {
        \fwrite(\STDERR, "{$name} is not set: PORT and DATABASE_URL are needed\n");
        exit(2);
    }

    return $value;
};

$database = Database::connect($setting('DATABASE_URL'), new PoolOptions(size: 12));

// Both instances may start at the same time, and CREATE … IF NOT EXISTS is not made for that.
$database->transaction(static function (Transaction $transaction): void {
    $transaction->execute("SELECT pg_advisory_xact_lock(hashtext('rinha'))");
    foreach (\array_filter(\explode(";\n", (string) \file_get_contents(__DIR__ . '/schema.sql')), \trim(...)) as $statement) {
        $transaction->execute($statement);
    }
});

$inserts = match (\getenv('INSERTS') ?: 'single') {
    'single' => new SingleInserts($database),
    'shared' => new SharedInserts($database),
    default => throw new \RuntimeException('INSERTS must be single or shared, got ' . \getenv('INSERTS')),
};
$app = new App();
(new Api(new People($database, $inserts)))->addTo($app->http("127.0.0.1:{$setting('PORT')}"));
$app->run();
