<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Laravel;

use Carbon\Carbon;
use Carbon\CarbonImmutable;
use Carbon\CarbonInterval;
use Illuminate\Database\Connection;
use Illuminate\Database\Eloquent\Model;
use Illuminate\Http\Request;
use Illuminate\Http\Resources\Json\JsonResource;
use Illuminate\Pagination\Paginator;
use Illuminate\Support\Facades\Date;
use Illuminate\Support\Facades\DB;
use Illuminate\Support\Facades\Lang;
use Illuminate\Support\Facades\Log;
use Illuminate\Support\Str;

/** Says what Laravel's and Carbon's settings are; with `?change=1` it changes all of them first, and waits. */
final class SettingsCheck
{
    /** @return array<string, mixed> */
    public function __invoke(Request $request): array
    {
        if ($request->query('change') !== null) {
            self::change();
            $directory = (string) \getenv('APP_VAR');
            \touch("$directory/changed");
            while (!\is_file("$directory/released")) {
                \usleep(1_000);
            }
        }

        return self::settings();
    }

    private static function change(): void
    {
        Carbon::setTestNow('2001-01-01');
        CarbonImmutable::setTestNow('2001-01-01');
        // Carbon 3 has the first day from the locale alone.
        \method_exists(Carbon::class, 'setWeekStartsAt') && Carbon::setWeekStartsAt(Carbon::WEDNESDAY);
        Carbon::setWeekendDays([Carbon::WEDNESDAY]);
        Carbon::useMonthsOverflow(false);
        Carbon::setHumanDiffOptions(Carbon::JUST_NOW);
        Carbon::setToStringFormat('Y');
        Carbon::macro('tagged', static fn(): string => 'tagged');
        CarbonInterval::setCascadeFactors(['minute' => [7, 'seconds']]);
        Date::use(CarbonImmutable::class);
        Str::createUuidsUsing(static fn(): string => 'same');
        Model::unguard();
        Model::preventLazyLoading();
        Model::$snakeAttributes = false;
        JsonResource::withoutWrapping();
        Paginator::useBootstrap();
        Lang::setFallback('fr');
        Log::setDefaultDriver('null');
        \config(['logging.channels.own' => ['driver' => 'errorlog']]);
        Log::channel('own');
        self::connection()->setTablePrefix('other_');
        self::connection()->enableQueryLog();
    }

    private static function connection(): Connection
    {
        \config(['database.connections.settings' => ['driver' => 'sqlite', 'database' => ':memory:', 'prefix' => 'own_']]);

        return DB::connection('settings');
    }

    /** @return array<string, mixed> */
    private static function settings(): array
    {
        return [
            'test time' => Carbon::hasTestNow() || CarbonImmutable::hasTestNow(),
            'weekend' => Carbon::getWeekendDays(),
            'overflow' => Carbon::shouldOverflowMonths(),
            'differences' => Carbon::getHumanDiffOptions(),
            'format' => (string) Carbon::create(2020),
            'macro' => Carbon::hasMacro('tagged'),
            'interval' => \count(CarbonInterval::getCascadeFactors()),
            'dates' => \get_class(\now()),
            'same UUID' => (string) Str::uuid() === 'same',
            'unguarded' => Model::isUnguarded(),
            'lazy loading' => Model::preventsLazyLoading(),
            'attributes' => Model::$snakeAttributes,
            'wrap' => JsonResource::$wrap,
            'pages' => Paginator::$defaultView,
            'fallback' => Lang::getFallback(),
            'log' => Log::getDefaultDriver(),
            'channels' => \array_keys(Log::getChannels()),
            'prefix' => self::connection()->getTablePrefix(),
            'query log' => self::connection()->logging(),
        ] + (\method_exists(Carbon::class, 'setWeekStartsAt') ? ['first day' => Carbon::getWeekStartsAt()] : []);
    }
}
