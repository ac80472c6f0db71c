<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Internal;

use Illuminate\Support\Traits\Macroable;

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
        'Carbon\Carbon' => ['translator', 'testNow', 'weekStartsAt', 'weekEndsAt', 'toStringFormat', 'serializer'],
        'Carbon\CarbonImmutable' => ['translator', 'testNow', 'weekStartsAt', 'weekEndsAt', 'toStringFormat', 'serializer'],
        'Carbon\CarbonInterval' => ['translator'],
        'Carbon\FactoryImmutable' => ['currentInstance', 'defaultInstance'],
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
            'resolver', 'dispatcher', 'booting', 'booted', 'bootedCallbacks', 'globalScopes', 'traitInitializers', 'ignoreOnTouch', 'isBroadcasting',
            'modelsShouldPreventLazyLoading', 'lazyLoadingViolationCallback', 'discardedAttributeViolationCallback', 'missingAttributeViolationCallback',
            'modelsShouldPreventSilentlyDiscardingAttributes', 'modelsShouldPreventAccessingMissingAttributes', 'modelsShouldAutomaticallyEagerLoadRelationships',
            'unguarded', 'encrypter', 'relationResolvers', 'ignoreTimestampsOn',
        ],
        'Illuminate\Database\Eloquent\Relations\Relation' => ['constraints', 'morphMap', 'requireMorphMap'],
        'Illuminate\Foundation\Bootstrap\HandleExceptions' => ['app'],
        'Illuminate\Foundation\Http\Middleware\ConvertEmptyStringsToNull' => ['skipCallbacks'],
        'Illuminate\Foundation\Http\Middleware\TrimStrings' => ['skipCallbacks'],
        'Illuminate\Foundation\Support\Providers\RouteServiceProvider' => ['alwaysLoadRoutesUsing', 'alwaysLoadCachedRoutesUsing'],
        'Illuminate\Http\Middleware\TrustHosts' => ['alwaysTrust'],
        'Illuminate\Http\Resources\Json\JsonResource' => ['wrap', 'forceWrapping'],
        'Illuminate\Mail\Mailable' => ['viewDataCallback'],
        'Illuminate\Pagination\AbstractCursorPaginator' => ['currentCursorResolver'],
        'Illuminate\Pagination\AbstractPaginator' => [
            'currentPathResolver', 'currentPageResolver', 'queryStringResolver', 'viewFactoryResolver', 'defaultView', 'defaultSimpleView',
        ],
        'Illuminate\Queue\Queue' => ['createPayloadCallbacks'],
        'Illuminate\Session\Middleware\AuthenticateSession' => ['redirectToCallback'],
        'Illuminate\Support\DateFactory' => ['callable', 'dateClass', 'factory'],
        'Illuminate\Support\EncodedHtmlString' => ['encodeUsingFactory'],
        'Illuminate\Support\Facades\Facade' => ['app', 'resolvedInstance'],
        'Illuminate\Support\Number' => ['locale', 'currency'],
        'Illuminate\Support\Once' => ['instance'],
        'Illuminate\Support\Uri' => ['urlGeneratorResolver'],
        'Illuminate\Validation\Rules\Email' => ['defaultCallback'],
        'Illuminate\Validation\Rules\File' => ['defaultCallback'],
        'Illuminate\Validation\Rules\Password' => ['defaultCallback'],
        'Illuminate\View\Component' => ['componentsResolver', 'factory'],
        'Illuminate\View\DynamicComponent' => ['compiler'],
        'Symfony\Component\HttpFoundation\Request' => ['trustedProxies', 'trustedHostPatterns', 'trustedHosts', 'trustedHeaderSet', 'requestFactory'],
    ];

    /** @return list<string> those that this version of Laravel has, as {@see \Weft\Runtime\Realm::isolate()} takes them */
    public static function known(): array
    {
        $names = [];
        foreach (self::PROPERTIES as $class => $properties) {
            foreach (\class_exists($class) ? $properties : [] as $property) {
                \property_exists($class, $property) && (new \ReflectionProperty($class, $property))->isStatic() && $names[] = "$class::$property";
            }
        }

        return $names;
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
