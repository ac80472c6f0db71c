<?php

declare(strict_types=1);

// A page of classic PHP: nothing in it knows of Weft, but the wait for which any library would do.

use function Weft\delay;

if (isset($_GET['upload'])) {
    $file = $_FILES['file'];
    echo "$file[name] $file[size] $file[type] ", move_uploaded_file($file['tmp_name'], $_GET['upload']) ? 'moved' : 'refused';

    return;
}
if (isset($_GET['redirect'])) {
    header('Location: /elsewhere', true, 302);
    exit;
}
if (isset($_GET['handler'])) {
    register_shutdown_function(static fn() => print(' shut down'));
    set_exception_handler(static function (Throwable $thrown): void {
        http_response_code(503);
        echo get_debug_type(set_exception_handler(null)), " handled {$thrown->getMessage()}";
        match ($_GET['handler']) {
            'exit' => exit,
            'throw' => throw new LogicException('again'),
            default => null,
        };
    });
}
if (isset($_GET['throw'])) {
    throw new RuntimeException('on purpose');
}
session_start();
$_SESSION['hits'] = ($_SESSION['hits'] ?? 0) + 1;
$user = $_GET['user'] ?? $_POST['user'] ?? 'none';
if (isset($_GET['check'])) {
    $n = $_GET['n'];
    $zone = (int) $n % 2 === 0 ? 'Asia/Tokyo' : 'Europe/Vienna';
    date_default_timezone_set($zone);
    ini_set('precision', (string) (5 + (int) $n % 10));
    $_SESSION['user'] = $user;
    header("X-Check: $n");
    set_error_handler(static fn(int $code, string $message): bool => $message === $n || throw new LogicException("the error handler of $n got $message"));
    $matched = 0;
    for ($i = 0; $i < 5; $i++) {
        delay(0.001 * (((int) $n + $i) % 5));
        trigger_error($n);
        $matched += (int) (
            $_GET['user'] === $user && $_GET['n'] === $n && $_COOKIE['PHPSESSID'] === "session$n" && session_id() === "session$n"
            && $_SESSION['user'] === $user && date_default_timezone_get() === $zone && ini_get('precision') === (string) (5 + (int) $n % 10)
            && in_array("X-Check: $n", headers_list(), true)
        );
    }
    restore_error_handler();
    echo "matched $user $n $matched";

    return;
}
delay(0.001);
header("X-User: $user");
setcookie('seen', (string) $_SESSION['hits']);
if (isset($_GET['status'])) {
    http_response_code((int) $_GET['status']);
}
echo "$user $_SESSION[hits] $_SERVER[REQUEST_METHOD] ", file_get_contents('php://input');
