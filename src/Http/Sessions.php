<?php

declare(strict_types=1);

namespace Weft\Http;

use Weft\Http\Internal\ErrorPage;
use Weft\Http\Internal\FileBody;
use Weft\Http\Internal\KeptSession;
use Weft\Internal\Jitter;
use Weft\Internal\Number;

use function Weft\delay;

/**
 * Middleware with sessions: `$routes->use(new Sessions(new Sessions\FileStore('/var/lib/app/sessions')))`, then `$request->session()` in handlers.
 *
 * The cookie has a random id of 256 bits; the store has its hash. A session begins when a handler sets its first value. It is kept when
 * the handler has returned, before the response is sent: values that a streamed body sets are lost. An unknown id is never used for a new session.
 */
final class Sessions
{
    private const CREATED = "\0created";
    /** Of an old id: the hash of the session's new one. It gives no access to the values; a logout that has begun with the old id ends the new one by it. */
    private const MOVED_TO = "\0movedTo";
    /** Seconds for which an old id leads to the new one: longer than requests take that have begun before the renewal. */
    private const MOVED_FOR = 60.0;
    /** Fraction of the idle time after which an unchanged session is stored again. It is stored for as much longer, so that it lasts that time. */
    private const REFRESH_AFTER_FRACTION = 0.1;
    private const TOUCHED = "\0touched";
    /** One in this many writes deletes expired sessions. */
    private const PRUNE_PROBABILITY_DIVISOR = 1_000;
    private const MAX_LOGOUT_ATTEMPTS = 20;
    /** Seconds of the longest pause before an attempt to store changes: doubled from attempt to attempt, up to a maximum. */
    private const BACK_OFF = 0.005;
    private const MAX_BACK_OFF = 0.25;
    /** Seconds after which a session that other requests change all the time is given up. */
    private const GIVE_UP_AFTER = 30.0;

    /**
     * @param float $idle seconds without a request after which a session ends, above 0
     * @param float $lifetime seconds after which it ends in any case, above 0
     * @param string|null $cookie its name; by default `__Host-session`, or `session` if not secure
     * @param bool $secure sends the cookie over TLS only; false is for development
     * @param SameSite $sameSite which requests of other sites carry the cookie
     *
     * @throws \ValueError
     */
    public function __construct(
        private readonly SessionStore $store,
        private readonly float $idle = 7_200.0,
        private readonly float $lifetime = 604_800.0,
        private readonly ?string $cookie = null,
        private readonly bool $secure = true,
        private readonly SameSite $sameSite = SameSite::Lax,
    ) {
        if (!($idle > 0.0) || !($lifetime > 0.0)) {
            throw new \ValueError('idle and lifetime of sessions must be above 0 seconds, got ' . Number::text($idle) . ' and ' . Number::text($lifetime));
        }
        $this->cookie('', 0);
    }

    public function __invoke(Request $request, \Closure $next): mixed
    {
        $id = $request->cookie($this->name());
        $id = $id !== null && \preg_match('/^[\w-]{43}$/D', $id) === 1 ? $id : null;
        $kept = new KeptSession(null, []);
        $session = new Session(function () use ($id, &$kept): array {
            $kept = $this->read($id);

            return \array_filter($kept->values, static fn(string $name): bool => !\str_starts_with($name, "\0"), \ARRAY_FILTER_USE_KEY);
        });
        $request->useSession($session);
        try {
            $response = $next($request);
        } catch (HttpException $error) {
            $response = ErrorPage::ofException($error, $request);
        }
        if ($session->isRenewed()) {
            $session->values();
        }
        $cookie = null;
        if ($session->isDestroyed()) {
            $cookie = $this->destroy($id);
            [$id, $kept] = [null, new KeptSession(null, [])];
        }
        if ($session->isLoaded()) {
            $cookie = $this->keep($session, $id, $kept) ?? $cookie;
        }
        if (!$response instanceof Response) {
            return $response;
        }
        // A streamed body may read the session when its header has been sent.
        $mayRead = $id !== null && !\is_string($response->body) && !$response->body instanceof FileBody;
        if (!$session->isLoaded() && !$mayRead && $cookie === null) {
            return $response;
        }
        // A response that depends on a session must not be cached for others.
        $response = $response->withHeader('cache-control', $response->header('cache-control') ?? 'private, no-cache');

        return $cookie === null ? $response : $response->withCookie($cookie);
    }

    private function read(?string $id): KeptSession
    {
        $kept = $id === null ? new KeptSession(null, []) : $this->readHash(self::hash($id));

        return isset($kept->values[self::MOVED_TO]) ? new KeptSession(null, []) : $kept;
    }

    private function readHash(string $hash): KeptSession
    {
        $stored = $this->store->read($hash);
        $values = $stored === null ? null : \json_decode($stored->data, true);

        /** @var array<string, mixed> $values */
        return \is_array($values) ? new KeptSession($stored, $values) : new KeptSession(null, []);
    }

    /** @return Cookie|null null keeps the browser's */
    private function keep(Session $session, ?string $id, KeptSession $kept): ?Cookie
    {
        $changes = $session->changes();
        $isNew = $kept->stored === null;
        $now = \microtime(true);
        $isDue = $now - (float) ($kept->values[self::TOUCHED] ?? 0.0) > $this->idle * self::REFRESH_AFTER_FRACTION;
        if ($isNew ? \array_filter($changes, static fn(mixed $value): bool => $value !== null) === [] : $changes === [] && !$session->isRenewed() && !$isDue) {
            return null;
        }
        $isMoving = $session->isRenewed() && !$isNew;
        $ownId = $isNew || $isMoving || $id === null ? self::randomId() : $id;
        $ownVersion = $ownId === $id ? $kept->stored->version ?? 0 : 0;
        for ($attempt = 0;; $attempt++) {
            $created = (float) ($kept->values[self::CREATED] ?? $now);
            $left = \min($this->idle * (1.0 + self::REFRESH_AFTER_FRACTION), $created + $this->lifetime - $now);
            if ($left <= 0.0) {
                $id === null || $this->store->delete(self::hash($id));

                return null;
            }
            $values = \array_filter(\array_replace($kept->values, $changes), static fn(mixed $value): bool => $value !== null);
            $isWritten = $this->store->write(self::hash($ownId), self::encode([self::CREATED => $created, self::TOUCHED => $now] + $values), $ownVersion, $left);
            if ($isWritten && (!$isMoving || $this->move((string) $id, $kept->stored->version ?? 0, $ownId, $left))) {
                \mt_rand(1, self::PRUNE_PROBABILITY_DIVISOR) === 1 && $this->store->prune();

                return $ownId === $id ? null : $this->cookie($ownId, null);
            }
            // Another request of the session was first. It has refreshed the session, too.
            if ($changes === [] && !$isMoving) {
                return null;
            }
            if (\microtime(true) - $now > self::GIVE_UP_AFTER) {
                $isMoving && $this->store->delete(self::hash($ownId));
                $seconds = Number::text(self::GIVE_UP_AFTER);
                throw new \RuntimeException("A session could not be stored within $seconds seconds: other requests change it all the time");
            }
            if ($attempt > 0) {
                // Of many requests at once, one is first each time: without the pause most of the others would write in vain.
                delay(\min(self::BACK_OFF * 2 ** $attempt, self::MAX_BACK_OFF) * Jitter::fraction());
            }
            // Its values stay, except those that this request has changed.
            $kept = $this->read($id);
            if ($kept->stored === null) {
                // It was destroyed or renewed meanwhile, and must not come back. The browser's cookie may already have the new id.
                $isMoving && $this->store->delete(self::hash($ownId));

                return null;
            }
            $ownVersion = $isMoving ? $ownVersion + 1 : $kept->stored->version;
        }
    }

    /**
     * Ends the old id of a renewed session in favour of the new one, which nobody knows before. One write decides it: of two renewals, or a
     * renewal and a logout, one finds that the other was first.
     */
    private function move(string $id, int $version, string $newId, float $left): bool
    {
        return $this->store->write(self::hash($id), self::encode([self::MOVED_TO => self::hash($newId)]), $version, \min(self::MOVED_FOR, $left));
    }

    /** @return Cookie|null deletes the browser's, if it has one */
    private function destroy(?string $id): ?Cookie
    {
        if ($id === null) {
            return null;
        }
        $hash = self::hash($id);
        for ($attempt = 0; $hash !== null && $attempt < self::MAX_LOGOUT_ATTEMPTS; $attempt++) {
            $kept = $this->readHash($hash);
            $next = $kept->values[self::MOVED_TO] ?? null;
            // After a write that succeeds, a renewal that has not moved the session yet cannot do so any more.
            if ($kept->stored === null || $next !== null || $this->store->write($hash, '', $kept->stored->version, self::MOVED_FOR)) {
                $this->store->delete($hash);
                $hash = \is_string($next) ? $next : null;
            }
        }
        $hash === null || $this->store->delete($hash);

        return $this->cookie('', 0);
    }

    private function cookie(string $id, ?int $maxAge): Cookie
    {
        return new Cookie($this->name(), $id, $maxAge, secure: $this->secure, sameSite: $this->sameSite);
    }

    private function name(): string
    {
        return $this->cookie ?? ($this->secure ? '__Host-session' : 'session');
    }

    private static function randomId(): string
    {
        return \rtrim(\strtr(\base64_encode(\random_bytes(32)), '+/', '-_'), '=');
    }

    /** @param array<string, mixed> $values */
    private static function encode(array $values): string
    {
        return \json_encode($values, \JSON_THROW_ON_ERROR | \JSON_UNESCAPED_UNICODE | \JSON_UNESCAPED_SLASHES | \JSON_PRESERVE_ZERO_FRACTION);
    }

    private static function hash(string $id): string
    {
        return \hash('sha256', $id);
    }
}
