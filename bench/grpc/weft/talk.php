<?php

declare(strict_types=1);

/*
 * One call of api.Users/Lookup, both ways, on 127.0.0.1:$PORT: talk.php MESSAGES. Prints JSON: messages that came back, seconds, and
 * the resident KiB of this process after a tenth of them and at the end.
 */

use Weft\Examples\Users\GetUserRequest;
use Weft\Examples\Users\UsersClient;
use Weft\Grpc\Client\Http2Channel;

use function Weft\run;

require __DIR__ . '/../../../examples/users/autoload.php';

$messages = (int) ($argv[1] ?? 1_000_000);
$resident = static function (): int {
    preg_match('/^VmRSS:\s+(\d+)/m', (string) file_get_contents('/proc/self/status'), $found);

    return (int) $found[1];
};
$requests = (static function () use ($messages): Generator {
    for ($i = 1; $i <= $messages; $i++) {
        yield new GetUserRequest($i);
    }
})();
$report = run(static function () use ($requests, $messages, $resident): array {
    $users = new UsersClient(Http2Channel::connect('127.0.0.1:' . getenv('PORT')));
    $start = microtime(true);
    $count = $early = 0;
    foreach ($users->lookup($requests) as $user) {
        $user->id === ++$count || throw new UnexpectedValueException("message $count is the user $user->id");
        if ($count === intdiv($messages, 10)) {
            $early = $resident();
        }
    }

    return ['messages' => $count, 'seconds' => microtime(true) - $start, 'early_kib' => $early, 'late_kib' => $resident()];
});
echo json_encode($report), "\n";
