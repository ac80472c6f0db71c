<?php

declare(strict_types=1);

namespace Weft\Native;

/** State of PHP that exists once per realm. {@see \Weft\Runtime\Realm} is its public half. */
final class Realm
{
    public function __construct()
    {
    }

    /**
     * Static properties that each realm has its own values of; before the first realm exists.
     *
     * @param list<string> $properties `Class::property`
     * @param bool $isInherited whether a realm begins with the value outside of realms instead of the declared one
     *
     * @throws \ValueError there is no such static property
     * @throws \Error a realm exists
     */
    public static function isolate(array $properties, bool $isInherited): void
    {
    }

    /** The realm of the running fiber. */
    public static function current(): ?Realm
    {
    }

    /**
     * The running fiber belongs to the realm until `leave()`.
     *
     * @throws \Error outside of fibers, or in a realm
     */
    public function enter(): void
    {
    }

    /** No effect outside of realms. */
    public static function leave(): void
    {
    }

    /**
     * Puts a request into the superglobals, `php://input` and `filter_input()`, and forgets headers, session and last error of the one before. Shutdown
     * functions that were registered before the first request are set aside. Settings (`ini_set()`, `error_reporting()`, time zone, locale,
     * `mb_internal_encoding()` and its like) and `$_ENV` are put back to those that were in force at the first request.
     *
     * @param array<string, mixed> $server
     * @param array<array-key, mixed> $query
     * @param array<array-key, mixed> $form
     * @param array<array-key, mixed> $cookies
     * @param array<array-key, mixed> $files
     * @param array<array-key, mixed> $request
     * @param list<string> $uploads files that `move_uploaded_file()` accepts
     *
     * @throws \Error the fiber is not in this realm
     */
    public function begin(array $server, array $query, array $form, array $cookies, array $files, array $request, string $body, array $uploads = []): void
    {
    }

    /** The settings in force now are those that each further request of this realm begins with. No effect outside of realms. */
    public static function keepSettings(): void
    {
    }

    /**
     * The status and the header lines; both are forgotten.
     *
     * @return array{int, list<string>}
     *
     * @throws \Error the fiber is not in this realm
     */
    public function finish(): array
    {
    }

    /**
     * After a request: superglobals, `php://input` and everything else that `begin()` puts in place are empty, `$_SERVER` and the settings are those of
     * `keepSettings()`, and handles of `php://input` are closed.
     *
     * @throws \Error the fiber is not in this realm
     */
    public function clear(): void
    {
    }

    /** A task was made that runs in this realm, for a request or other work of its application. */
    public function taskStarted(): void
    {
    }

    public function taskEnded(): void
    {
    }

    /** Whether such tasks have not ended. */
    public function hasTasks(): bool
    {
    }

    /** From now on `header()`, `setcookie()`, `session_start()` and a new `http_response_code()` throw in fibers outside of realms. */
    public static function refuseHeadersOutside(): void
    {
    }

    /** @throws \Error the fiber is not in this realm */
    public function runShutdownFunctions(): void
    {
    }

    /**
     * Whether the output buffers that are open now belong to the server: `ob_get_level()` in this fiber counts from there, and nothing closes
     * them. Those that all fibers share are never seen in one.
     */
    public static function hideBuffers(bool $areHidden): void
    {
    }

    /**
     * Closes the output buffers of this fiber above `$level`, a value of `ob_get_level()` before `hideBuffers(true)`, and shows those that are hidden. Those
     * that `ob_start()` was told not to remove are closed as well. What a callback of a buffer throws is thrown when all are closed.
     *
     * @param bool $areFlushed whether what they hold goes to the buffer below; otherwise it is discarded
     */
    public static function closeBuffers(int $level, bool $areFlushed): void
    {
    }

    /**
     * Calls `$work`. `exit()` and `die()` inside of it end the call and not the process: `catch` blocks do not see them, `finally` blocks run, and
     * what output buffers hold goes to those that were open before. Of the tasks that `$work` starts, each needs a call of its own.
     *
     * @return bool whether `$work` has exited
     *
     * @throws \Throwable of `$work`
     */
    public static function untilExit(\Closure $work): bool
    {
    }
}
