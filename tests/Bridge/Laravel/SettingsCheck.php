<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Laravel;

use Carbon\Carbon;
use Carbon\CarbonImmutable;
use Carbon\CarbonInterval;
use Illuminate\Database\Connection;
use Illuminate\Database\Eloquent\Model;
use Illuminate\Database\Schema\Builder;
use Illuminate\Hashing\BcryptHasher;
use Illuminate\Http\Request;
use Illuminate\Http\Resources\Json\JsonResource;
use Illuminate\Pagination\Paginator;
use Illuminate\Support\Facades\Auth;
use Illuminate\Support\Facades\Cache;
use Illuminate\Support\Facades\Date;
use Illuminate\Support\Facades\DB;
use Illuminate\Support\Facades\Hash;
use Illuminate\Support\Facades\Lang;
use Illuminate\Support\Facades\Log;
use Illuminate\Support\Facades\Session;
use Illuminate\Support\Facades\View;
use Illuminate\Support\Str;
use Illuminate\View\FileViewFinder;

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
        Cache::setDefaultDriver('null');
        Session::setDefaultDriver('null');
        Auth::resolveUsersUsing(static fn(): string => 'someone');
        self::hasher()->setRounds(6);
        Model::unsetEventDispatcher();
        View::addLocation('/tenant');
        View::addNamespace('tenant', '/tenant');
        Builder::defaultStringLength(100);
        self::connection()->setDatabaseName('tenant');
        self::connection()->unsetEventDispatcher();
        self::connection()->beforeExecuting(static fn() => null);
        self::connection()->setTablePrefix('other_');
        self::connection()->enableQueryLog();
    }

    private static function connection(): Connection
    {
        \config(['database.connections.settings' => ['driver' => 'sqlite', 'database' => ':memory:', 'prefix' => 'own_']]);

        return DB::connection('settings');
    }

    private static function hasher(): BcryptHasher
    {
        $hasher = Hash::driver('bcrypt');
        \assert($hasher instanceof BcryptHasher);

        return $hasher;
    }

    private static function finder(): FileViewFinder
    {
        $finder = View::getFinder();
        \assert($finder instanceof FileViewFinder);

        return $finder;
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
            'cache' => Cache::getDefaultDriver(),
            'session' => Session::getDefaultDriver(),
            'user' => (Auth::userResolver())() === 'someone',
            'rounds' => self::hasher()->needsRehash(\password_hash('x', \PASSWORD_BCRYPT, ['cost' => 6])),
            'events' => Model::getEventDispatcher() === null,
            'places of views' => self::finder()->getPaths(),
            'namespaces of views' => \array_keys(self::finder()->getHints()),
            'length of texts' => Builder::$defaultStringLength,
            'name of the database' => self::connection()->getDatabaseName(),
            'events of the connection' => self::connection()->getEventDispatcher() === null,
            'callbacks of the connection' => \count((fn(): array => $this->beforeExecutingCallbacks)->bindTo(self::connection(), Connection::class)()),
            'prefix' => self::connection()->getTablePrefix(),
            'query log' => self::connection()->logging(),
        ] + (\method_exists(Carbon::class, 'setWeekStartsAt') ? ['first day' => Carbon::getWeekStartsAt()] : []);
    }
}
