<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Internal;

use Illuminate\Foundation\Application;
use Illuminate\Foundation\Http\HtmlDumper;
use Psr\Log\LoggerInterface;
use Weft\Bridge\Internal\Setting;
use Weft\Bridge\Laravel\Octane\Instance as OctaneInstance;
use Weft\Http\ApplicationPool;
use Weft\Http\Recycling;
use Weft\Http\Request;
use Weft\Http\Response;
use Weft\Runtime\Realm;
use Weft\UsageError;

/**
 * The applications of a worker process, each in a realm of its own and with one request at a time.
 *
 * @internal
 */
final class Applications
{
    /** @param ApplicationPool<Served> $pool */
    private function __construct(public readonly ApplicationPool $pool, private readonly string $public)
    {
    }

    /**
     * @param Application $application of the console: it says where the others are made and how they are configured
     * @param int<1, max>|null $size null: by memory
     * @param string|null $base the directory with `bootstrap/app.php`; null: that of the application
     * @param bool $onOctane whether Octane's worker prepares the applications
     *
     * @throws UsageError for a number in the configuration that is none
     */
    public static function of(Application $application, ?int $size, LoggerInterface $logger, ?string $base = null, bool $onOctane = false): self
    {
        $config = $application->make('config');
        /** @var list<string> $own */
        $own = (array) $config->get('weft.isolate', []);
        Realm::isolate(...\array_values(\array_unique([...Statics::known(), ...Statics::macros(), ...$own])));
        $base ??= $application->basePath();
        $pool = new ApplicationPool(
            static fn(): Served => $onOctane ? new OctaneInstance($base) : Instance::boot($base),
            $size,
            Setting::seconds('"application_wait" in config/weft.php (WEFT_APPLICATION_WAIT)', Setting::given($config->get('weft.application_wait')) ?? 5.0),
            new Recycling(
                Setting::integer('"application_requests" in config/weft.php (WEFT_APPLICATION_REQUESTS)', Setting::given($config->get('weft.application_requests')) ?? 0, 0),
                Setting::seconds('"application_age" in config/weft.php (WEFT_APPLICATION_AGE)', Setting::given($config->get('weft.application_age')) ?? 0.0),
                Setting::bytes('"application_memory" in config/weft.php (WEFT_APPLICATION_MEMORY)', Setting::given($config->get('weft.application_memory')) ?? 0),
            ),
            static fn(Served $instance) => $instance->reset(),
            static fn(Served $instance) => $instance->close(),
            logger: $logger,
            name: 'applications',
        );

        return new self($pool, (string) $application->make('path.public'));
    }

    /**
     * A server calls it before its applications boot. PHP runs on the command line here, so the application of the console has chosen the
     * dumper of the terminal (Laravel 9.35 and newer). Those of the requests would do the same: with this variable VarDumper keeps the one
     * it has.
     */
    public static function dumpIntoResponses(Application $application): void
    {
        if (isset($_SERVER['VAR_DUMPER_FORMAT'])) {
            return;
        }
        \class_exists(HtmlDumper::class) && HtmlDumper::register($application->basePath(), (string) $application->make('config')->get('view.compiled'));
        $_SERVER['VAR_DUMPER_FORMAT'] = 'html';
    }

    public function __invoke(Request $request): Response
    {
        return $this->pool->serve(
            $request,
            static fn(Served $instance): Response => $instance->handle(),
            static fn(Served $instance) => $instance->terminate(),
            [
                'SCRIPT_FILENAME' => "$this->public/index.php",
                'SCRIPT_NAME' => '/index.php',
                'PHP_SELF' => '/index.php',
                'DOCUMENT_ROOT' => $this->public,
            ],
        );
    }
}
