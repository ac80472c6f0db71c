<?php

declare(strict_types=1);

namespace App\Console;

use App\Console\Commands\QuotesCommand;
use Illuminate\Foundation\Console\Kernel as ConsoleKernel;

final class Kernel extends ConsoleKernel
{
    /** @var list<class-string> */
    protected $commands = [QuotesCommand::class];
}
