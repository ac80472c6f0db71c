<?php

declare(strict_types=1);

use Weft\App;
use Weft\Http\ApplicationPool;
use Weft\Http\Request;
use Weft\Http\Response;

require_once __DIR__ . '/../../../autoload.php';

// Each path but /clean and /reset leaves something behind that the next request finds.

final class LeakingUser
{
    public function __construct(public readonly string $name) {}
}

final class LeakingRegistry
{
    public static ?LeakingUser $user = null;
    private static int $count = 0;

    public static function count(): void
    {
        self::$count++;
    }

    public static function remember(string $value): void
    {
        static $last = '';
        $last = $value . \count(\func_get_args()) . \microtime();
    }
}

final class LeakingMailer
{
    /** @var list<string> */
    private array $recipients = [];
    public ?string $draft = null;

    public function add(string $recipient): void
    {
        $this->recipients[] = $recipient;
    }
}

final class LeakingApplication
{
    private readonly LeakingMailer $mailer;

    public function __construct()
    {
        $this->mailer = new LeakingMailer();
    }

    public function handle(string $path): string
    {
        match ($path) {
            '/static' => LeakingRegistry::$user = new LeakingUser('ada'),
            '/private' => LeakingRegistry::count(),
            '/variable' => LeakingRegistry::remember('x'),
            '/service' => $this->mailer->add('ada@example.org'),
            '/reset' => $this->mailer->draft = \uniqid(),
            default => null,
        };

        return "$path done";
    }

    public function reset(): void
    {
        $this->mailer->draft = null;
    }
}

$applications = new ApplicationPool(static fn(): LeakingApplication => new LeakingApplication(), 2, reset: static fn(LeakingApplication $application) => $application->reset());
$app = new App();
$app->http((string) \getenv('WEFT_LISTEN'))->fallback(static fn(Request $request): Response => $applications->serve(
    $request,
    static fn(LeakingApplication $application): Response => Response::text($application->handle($request->path())),
));
$app->run();
