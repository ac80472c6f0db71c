<?php

declare(strict_types=1);

/*
 * One process takes commands off a broker, stores each in a transaction, publishes an event for each and handles those.
 *
 *     php -d extension=…/libweft.so examples/customers/app.php [--broker=sqlite|rabbitmq] [--commands=100000] [--fresh]
 *
 * A run that was stopped goes on with what is left in the queue; --fresh gives it up and begins a new one.
 * sqlite keeps broker and database in one file, var/customers.sqlite; CUSTOMERS_FILE names another.
 * rabbitmq needs AMQP_URL and DATABASE_URL, as `make services` writes them to var/services/env.
 */

namespace Weft\Examples\Customers;

use Weft\Bus\Bus;
use Weft\Exception;
use Weft\Sql\Database;

use function Weft\run;

require __DIR__ . '/../../autoload.php';
\spl_autoload_register(static function (string $class): void {
    $file = __DIR__ . '/src/' . \substr($class, \strlen(__NAMESPACE__) + 1) . '.php';
    if (\str_starts_with($class, __NAMESPACE__ . '\\') && \is_file($file)) {
        require $file;
    }
});

$options = \getopt('', ['broker:', 'commands:', 'fresh'], $rest);
$broker = $options['broker'] ?? 'sqlite';
$commands = \filter_var($options['commands'] ?? 100_000, \FILTER_VALIDATE_INT, ['options' => ['min_range' => 1]]);
$unknown = \array_slice($argv, $rest);
foreach (\array_slice($argv, 1, $rest - 1) as $argument) {
    if (\str_starts_with($argument, '-') && !\preg_match('/^--((broker|commands)(=|$)|fresh$)/', $argument)) {
        $unknown[] = $argument;
    }
}
if (!\in_array($broker, ['sqlite', 'rabbitmq'], true) || $commands === false || $unknown !== []) {
    \fwrite(\STDERR, "usage: app.php [--broker=sqlite|rabbitmq] [--commands=N] [--fresh], N at least 1\n");
    exit(2);
}

$setting = static function (string $name): string {
    $value = \getenv($name);
    if ($value === false || $value === '') {
        \fwrite(\STDERR, "{$name} is not set: run `make services` and `. var/services/env` first\n");
        exit(2);
    }

    return $value;
};

$work = static function () use ($broker, $commands, $options, $setting): int {
    if ($broker === 'sqlite') {
        $file = \getenv('CUSTOMERS_FILE') ?: \dirname(__DIR__, 2) . '/var/customers.sqlite';
        \is_dir(\dirname($file)) || \mkdir(\dirname($file), 0o755, true);
        $lock = Lock::take("{$file}.lock");
        $database = Database::connect("sqlite://{$file}");
        $bus = Bus::connect("sqlite://{$file}", $database);
    } else {
        $url = $setting('DATABASE_URL');
        $lock = Lock::take(\sys_get_temp_dir() . '/weft-customers-' . \md5($url) . '.lock');
        $database = Database::connect($url);
        $bus = Bus::connect($setting('AMQP_URL'), $database);
    }
    try {
        return (new Demo($database, $bus, new Screen(), $commands, isset($options['fresh'])))->run();
    } finally {
        $bus->close();
        $database->close();
        $lock->release();
    }
};

try {
    exit(run($work));
} catch (Exception | AlreadyRunning $error) {
    // What users can mend themselves, a server that is down for example, needs no stack trace.
    \fwrite(\STDERR, "{$error->getMessage()}\n");
    exit(1);
}
