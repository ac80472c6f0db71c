<?php

declare(strict_types=1);

namespace Weft\Bridge\Internal;

/**
 * SQLSTATE of MySQL's errors as PHP's own extensions report it.
 *
 * @internal
 */
final class MysqlStates
{
    /** Of errors where Weft has one that is more exact. */
    private const STATES = [
        1022 => '23000', 1048 => '23000', 1062 => '23000', 1169 => '23000', 1216 => '23000', 1217 => '23000', 1451 => '23000',
        1452 => '23000', 1557 => '23000', 1586 => '23000', 1761 => '23000', 1762 => '23000', 4025 => '23000',
        1044 => '42000', 1045 => '28000', 1064 => '42000', 1065 => '42000', 1142 => '42000', 1143 => '42000', 1149 => '42000',
        1227 => '42000', 1370 => '42000', 1054 => '42S22', 1051 => '42S02', 1109 => '42S02', 1146 => '42S02', 1050 => '42S01',
        1213 => '40001', 1264 => '22003', 1690 => '22003', 1265 => '01000', 1292 => '22007', 1365 => '22012', 1366 => '22007',
        1406 => '22001', 1317 => '70100', 1969 => '70100', 1792 => '25006',
    ];

    /** States of Weft's own, which PostgreSQL shares and MySQL does not. */
    private const FOREIGN = ['55P03', '40P01', '42P01', '23514', '23502'];

    /** @param string|null $state that Weft's exception has */
    public static function of(int $number, ?string $state): string
    {
        return self::STATES[$number] ?? ($state === null || \in_array($state, self::FOREIGN, true) ? 'HY000' : $state);
    }
}
