<?php

declare(strict_types=1);

/*
 * The bus of the shop with its handlers, for app.php and for the commands that look into queues:
 *
 *     bin/weft queues examples/shop/bus.php shop
 */

namespace Weft\Examples\Shop;

use Weft\Bus\Bus;
use Weft\Sql\Database;

require_once __DIR__ . '/autoload.php';

$file = 'sqlite://' . \sys_get_temp_dir() . '/weft-shop.sqlite';
$database = Database::connect(\getenv('DATABASE_URL') ?: $file);
$orders = new Orders($database);
$stock = new Stock($database);

return Bus::connect(\getenv('BROKER_URL') ?: $file, $database)->handlers($orders, $stock);
