<?php

declare(strict_types=1);

namespace Weft\Bench;

/** Where RoadRunner is: no package of Debian has it. */
final class RoadRunner
{
    /**
     * Path of rr as ROADRUNNER names it; null without that variable. Its workers load the PHP library by ROADRUNNER_AUTOLOAD.
     *
     * @throws BenchmarkException when one of the two files is missing
     */
    public static function fromEnvironment(): ?string
    {
        $binary = getenv('ROADRUNNER') ?: null;
        if ($binary === null) {
            return null;
        }
        $autoload = (string) getenv('ROADRUNNER_AUTOLOAD');
        $autoload !== '' || throw new BenchmarkException('ROADRUNNER needs ROADRUNNER_AUTOLOAD, the vendor/autoload.php of a project that requires spiral/roadrunner-http');
        foreach ([$binary, $autoload] as $file) {
            is_file($file) || throw new BenchmarkException("there is no $file");
        }

        return $binary;
    }
}
