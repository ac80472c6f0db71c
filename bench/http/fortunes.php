<?php

declare(strict_types=1);

/**
 * The page of the fortunes, as a template in plain PHP: the same for every contender that is PHP.
 *
 * @param list<array{id: int, message: string}> $rows
 */
function fortunes(array $rows): string
{
    $rows[] = ['id' => 0, 'message' => 'Additional fortune added at request time.'];
    usort($rows, static fn (array $a, array $b): int => strcmp($a['message'], $b['message']));
    ob_start();
    ?>
<!DOCTYPE html>
<html><head><title>Fortunes</title></head><body><table><tr><th>id</th><th>message</th></tr>
    <?php foreach ($rows as $row) : ?>
<tr><td><?= $row['id'] ?></td><td><?= htmlspecialchars($row['message'], ENT_QUOTES, 'UTF-8') ?></td></tr>
    <?php endforeach ?>
</table></body></html>
    <?php

    return (string) ob_get_clean();
}
