<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Internal;

use Illuminate\Support\Traits\Macroable;
use Weft\Http\Internal\KeptStatics;

/**
 * The static properties of Laravel, Symfony and Carbon that hold an application, one of its services, or what an application sets for
 * itself. Each application has its own value of them.
 *
 * Caches whose content depends on nothing but the code (`Str::$snakeCache`, `Model::$mutatorCache`, …) are shared.
 *
 * @internal
 */
final class Statics
{
    private const PROPERTIES = [
        'Carbon\AbstractTranslator' => ['singletons'],
        'Carbon\Carbon' => ['translator', 'globalMacros', 'globalGenericMacros'],
        'Carbon\CarbonImmutable' => ['translator', 'globalMacros', 'globalGenericMacros'],
        'Carbon\CarbonInterval' => ['translator', 'macros'],
        'Carbon\CarbonPeriod' => ['macros'],
        'Illuminate\Auth\AuthenticationException' => ['redirectToCallback'],
        'Illuminate\Auth\Middleware\Authenticate' => ['redirectToCallback'],
        'Illuminate\Auth\Middleware\RedirectIfAuthenticated' => ['redirectToCallback'],
        'Illuminate\Auth\Notifications\ResetPassword' => ['createUrlCallback', 'toMailCallback'],
        'Illuminate\Auth\Notifications\VerifyEmail' => ['createUrlCallback', 'toMailCallback'],
        'Illuminate\Console\Application' => ['bootstrappers'],
        'Illuminate\Container\Container' => ['instance'],
        'Illuminate\Database\Connection' => ['resolvers'],
        'Illuminate\Database\Eloquent\Builder' => ['macros'],
        'Illuminate\Database\Eloquent\Factories\Factory' => ['factoryNameResolver', 'modelNameResolver'],
        'Illuminate\Database\Eloquent\Model' => [
            'resolver', 'booting', 'booted', 'bootedCallbacks', 'globalScopes', 'traitInitializers', 'ignoreOnTouch', 'encrypter', 'relationResolvers',
            'ignoreTimestampsOn',
        ],
        'Illuminate\Database\Eloquent\Relations\Relation' => ['constraints', 'morphMap', 'requireMorphMap'],
        'Illuminate\Foundation\Bootstrap\HandleExceptions' => ['app'],
        'Illuminate\Foundation\Support\Providers\RouteServiceProvider' => ['alwaysLoadRoutesUsing', 'alwaysLoadCachedRoutesUsing'],
        'Illuminate\Http\Middleware\TrustHosts' => ['alwaysTrust'],
        'Illuminate\Mail\Mailable' => ['viewDataCallback'],
        'Illuminate\Pagination\AbstractCursorPaginator' => ['currentCursorResolver'],
        'Illuminate\Pagination\AbstractPaginator' => [
            'currentPathResolver', 'currentPageResolver', 'queryStringResolver', 'viewFactoryResolver',
        ],
        'Illuminate\Queue\Queue' => ['createPayloadCallbacks'],
        'Illuminate\Session\Middleware\AuthenticateSession' => ['redirectToCallback'],
        'Illuminate\Support\EncodedHtmlString' => ['encodeUsingFactory'],
        'Illuminate\Support\Facades\Facade' => ['app', 'resolvedInstance'],
        'Illuminate\Support\Once' => ['instance'],
        'Illuminate\Support\Uri' => ['urlGeneratorResolver'],
        'Illuminate\View\Component' => ['componentsResolver', 'factory'],
        'Illuminate\View\DynamicComponent' => ['compiler'],
        'Symfony\Component\HttpFoundation\Request' => ['trustedProxies', 'trustedHostPatterns', 'trustedHosts', 'trustedHeaderSet', 'requestFactory'],
    ];

    /** Settings: the boot of an application chooses them, and what a request sets holds for that request. */
    private const SETTINGS = [
        'Carbon\Carbon' => self::DATES,
        'Carbon\CarbonImmutable' => self::DATES,
        'Carbon\CarbonInterval' => ['cascadeFactors', 'flipCascadeFactors'],
        self::CLOCK => ['currentClock', 'currentInstance', 'defaultInstance'],
        'Illuminate\Database\Eloquent\Model' => [
            'dispatcher', 'isBroadcasting', 'modelsShouldPreventLazyLoading', 'lazyLoadingViolationCallback', 'discardedAttributeViolationCallback',
            'missingAttributeViolationCallback', 'modelsShouldPreventSilentlyDiscardingAttributes', 'modelsShouldPreventAccessingMissingAttributes',
            'modelsShouldAutomaticallyEagerLoadRelationships', 'unguarded', 'snakeAttributes',
        ],
        'Illuminate\Database\Schema\Builder' => ['defaultStringLength', 'defaultTimePrecision', 'defaultMorphKeyType'],
        'Illuminate\Foundation\Http\Middleware\ConvertEmptyStringsToNull' => ['skipCallbacks'],
        'Illuminate\Foundation\Http\Middleware\TrimStrings' => ['skipCallbacks'],
        'Illuminate\Http\Resources\Json\JsonResource' => ['wrap', 'forceWrapping'],
        'Illuminate\Pagination\AbstractPaginator' => ['defaultView', 'defaultSimpleView'],
        'Illuminate\Support\DateFactory' => ['callable', 'dateClass', 'factory'],
        'Illuminate\Support\Number' => ['locale', 'currency'],
        'Illuminate\Support\Str' => ['uuidFactory', 'ulidFactory', 'randomStringFactory'],
        'Illuminate\Validation\Rules\Email' => ['defaultCallback'],
        'Illuminate\Validation\Rules\File' => ['defaultCallback'],
        'Illuminate\Validation\Rules\Password' => ['defaultCallback'],
    ];

    /** Carbon 3 keeps the test time in an object of it. */
    private const CLOCK = 'Carbon\FactoryImmutable';

    private const DATES = [
        'testNow', 'testDefaultTimezone', 'weekStartsAt', 'weekEndsAt', 'weekendDays', 'midDayAt', 'monthsOverflow', 'yearsOverflow', 'strictModeEnabled',
        'humanDiffOptions', 'toStringFormat', 'serializer',
    ];

    /** @var list<\ReflectionProperty>|null */
    private static ?array $settings = null;

    /** @return list<string> those that this version of Laravel has, as {@see \Weft\Runtime\Realm::isolate()} takes them */
    public static function known(): array
    {
        return \array_map(KeptStatics::name(...), [...KeptStatics::installed(self::PROPERTIES), ...KeptStatics::installed(self::SETTINGS)]);
    }

    /** The settings of the application that the task is in. */
    public static function settings(): KeptStatics
    {
        self::$settings ??= KeptStatics::installed(self::SETTINGS);

        return new KeptStatics(self::$settings, [self::CLOCK]);
    }

    /**
     * The macros that the providers of a booted application have defined. Their closures may hold the application.
     *
     * @return list<string>
     */
    public static function macros(): array
    {
        $names = [];
        foreach (\get_declared_classes() as $class) {
            if (\in_array(Macroable::class, \class_uses($class), true) && (new \ReflectionProperty($class, 'macros'))->getValue() !== []) {
                $names[] = "$class::macros";
            }
        }

        return $names;
    }
}
