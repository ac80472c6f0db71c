<?php

declare(strict_types=1);

namespace Weft\Workers\Internal;

/**
 * Signals by number, without the extension pcntl.
 *
 * @internal
 */
enum Signal: int
{
    case SIGHUP = 1;
    case SIGINT = 2;
    case SIGQUIT = 3;
    case SIGILL = 4;
    case SIGTRAP = 5;
    case SIGABRT = 6;
    case SIGBUS = 7;
    case SIGFPE = 8;
    case SIGKILL = 9;
    case SIGUSR1 = 10;
    case SIGSEGV = 11;
    case SIGUSR2 = 12;
    case SIGPIPE = 13;
    case SIGALRM = 14;
    case SIGTERM = 15;
    case SIGXCPU = 24;
    case SIGXFSZ = 25;
    case SIGSYS = 31;

    public static function name(int $number): string
    {
        return self::tryFrom($number)?->name ?? "signal $number";
    }
}
