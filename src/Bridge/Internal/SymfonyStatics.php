<?php

declare(strict_types=1);

namespace Weft\Bridge\Internal;

use Weft\Http\Internal\KeptStatics;
use Weft\Runtime\Realm;

/**
 * Static properties of Symfony, and of what is used with it, that belong to a kernel or its request. Other static properties of these
 * packages are caches of what holds for the whole process.
 *
 * @internal
 */
final class SymfonyStatics
{
    /** A realm begins with what the program has set before, such as trusted proxies in the front controller. */
    private const INHERITED = [
        'Symfony\Component\HttpFoundation\Request' => ['trustedProxies', 'trustedHostPatterns', 'trustedHosts', 'trustedHeaderSet', 'httpMethodParameterOverride', 'allowedHttpMethodOverride', 'formats', 'requestFactory'],
        'Symfony\Component\HttpFoundation\BinaryFileResponse' => ['trustXSendfileTypeHeader'],
        'Symfony\Component\VarDumper\VarDumper' => ['handler'],
        'Symfony\Component\Clock\Clock' => ['globalClock'],
        'Symfony\Component\ErrorHandler\ErrorHandler' => ['toStringException', 'exitCode'],
        'Monolog\Handler\ChromePHPHandler' => ['sendHeaders'],
        'Monolog\Handler\FirePHPHandler' => ['sendHeaders'],
    ];

    /** A realm begins with what the class declares. */
    private const DECLARED = [
        // Locks of files: another request of the process has to wait for them as one of another process does.
        'Symfony\Component\Cache\LockRegistry' => ['openedFiles', 'lockedFiles', 'signalingException', 'signalingCallback'],
        // Reset by the services of each kernel, while those of others still need it.
        'Symfony\Component\Form\ChoiceList\Factory\Cache\AbstractStaticOption' => ['options'],
        'Monolog\Handler\BrowserConsoleHandler' => ['initialized', 'records'],
        'Monolog\Handler\ChromePHPHandler' => ['initialized', 'overflowed', 'json'],
        'Monolog\Handler\FirePHPHandler' => ['initialized', 'messageIndex'],
    ];

    /** @var list<\ReflectionProperty>|null */
    private static ?array $settings = null;

    /** Before the first realm is made. Classes that are not installed are left out, and properties that a version does not have. */
    public static function isolate(): void
    {
        if (!\class_exists(\Weft\Native\Realm::class, false)) {
            return;
        }
        Realm::inherit(...\array_map(KeptStatics::name(...), KeptStatics::installed(self::INHERITED)));
        Realm::isolate(...\array_map(KeptStatics::name(...), KeptStatics::installed(self::DECLARED)));
    }

    /** The settings of the program and of the boot of a kernel. */
    public static function settings(): KeptStatics
    {
        self::$settings ??= KeptStatics::installed(self::INHERITED);

        return new KeptStatics(self::$settings);
    }
}
