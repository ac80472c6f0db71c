<?php

declare(strict_types=1);

// The bus with its handlers, for app.php and for commands such as: vendor/bin/weft queues bus.php greetings

use App\Greetings;
use Weft\Bus\Bus;
use Weft\Sql\Database;

require_once __DIR__ . '/autoload.php';

$file = 'sqlite://' . __DIR__ . '/var/app.sqlite';
$database = Database::connect(getenv('DATABASE_URL') ?: $file);

return Bus::connect(getenv('BROKER_URL') ?: $file, $database)->handlers(new Greetings());
