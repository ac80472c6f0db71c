<?php

declare(strict_types=1);

// The two loads of the servers, in plain PHP: a query with PDO, and a call of another service that takes 50 ms.

require_once __DIR__ . '/clients.php';

/** Connections are kept from request to request: a pool of a task's own where requests run at once, else one. */
function page(string $path, ?Closure $borrow = null): string
{
    if (str_starts_with($path, '/call')) {
        return curl('/wait?seconds=0.05');
    }
    static $statement = null;
    $query = static function (PDOStatement $statement): string {
        $statement->execute([random_int(1, 10_000)]);

        return json_encode($statement->fetch(PDO::FETCH_ASSOC), JSON_THROW_ON_ERROR);
    };

    return $borrow === null ? $query($statement ??= people()) : $borrow($query);
}

function people(): PDOStatement
{
    return pgsql()->prepare('SELECT id, name, email FROM hooks_people WHERE id = ?');
}
