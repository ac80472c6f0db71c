<?php

declare(strict_types=1);

namespace Weft\Bridge\Symfony;

use Symfony\Component\HttpKernel\HttpKernelInterface;
use Symfony\Component\Runtime\ResolverInterface;
use Symfony\Component\Runtime\RunnerInterface;
use Symfony\Component\Runtime\SymfonyRuntime;
use Weft\Bridge\Symfony\Internal\RememberingResolver;
use Weft\Bridge\Symfony\Internal\Runner;
use Weft\Bridge\Symfony\Internal\RuntimeOptions;

/**
 * Serves a Symfony application by Weft, without a change to its front controller:
 *
 * ```
 * APP_RUNTIME='Weft\Bridge\Symfony\Runtime' weft run public/index.php
 * ```
 *
 * or, in composer.json, `{"extra": {"runtime": {"class": "Weft\\Bridge\\Symfony\\Runtime"}}}`. On a web server (PHP-FPM, `php -S`), for
 * `bin/console`, and where the extension is not loaded, it is Symfony's own runtime.
 *
 * Options, in `extra.runtime`, `$_SERVER['APP_RUNTIME_OPTIONS']` or the environment:
 *
 * | option | environment | default | |
 * |---|---|---|---|
 * | `listen` | `WEFT_LISTEN` | `127.0.0.1:8000` | address, as `App::http()` takes it |
 * | `kernels` | `WEFT_KERNELS` | by memory, at most 32 | requests at the same time, each in a kernel of its own |
 * | `kernel_wait` | `WEFT_KERNEL_WAIT` | 5 | seconds that a request waits for a kernel, until it is answered 503 |
 * | `kernel_requests` | `WEFT_KERNEL_REQUESTS` | 0 | a kernel is replaced after so many requests; 0: never |
 * | `kernel_age` | `WEFT_KERNEL_AGE` | 0 | and after so many seconds |
 * | `kernel_memory` | `WEFT_KERNEL_MEMORY` | 0 | and when so many bytes of PHP's memory are in use, such as `256M` |
 * | `cancel_on_disconnect` | `WEFT_CANCEL_ON_DISCONNECT` | false | whether a request is cancelled when its client disconnects |
 * | `isolate` | `WEFT_ISOLATE` | – | static properties of the application that each kernel has its own of, also those of `weft:messenger:consume`: `App\Registry::$user`, a list or with commas |
 * | `public_dir` | `WEFT_PUBLIC_DIR` | the front controller's | files in it are served; empty: none |
 */
final class Runtime extends SymfonyRuntime
{
    /** @var (\Closure(): ?object)|null makes the application again */
    private ?\Closure $factory = null;

    public function getResolver(callable $callable, ?\ReflectionFunction $reflector = null): ResolverInterface
    {
        return new RememberingResolver(parent::getResolver($callable, $reflector), function (\Closure $factory): void {
            $this->factory = $factory;
        });
    }

    public function getRunner(?object $application): RunnerInterface
    {
        if (!$application instanceof HttpKernelInterface || \PHP_SAPI !== 'cli' || !\extension_loaded('weft') || $this->factory === null) {
            return parent::getRunner($application);
        }

        return new Runner($application, $this->factory, new RuntimeOptions($this->options));
    }
}
