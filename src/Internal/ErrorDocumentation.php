<?php

declare(strict_types=1);

namespace Weft\Internal;

use Weft\Exception;

/**
 * The page of `docs/errors` about an exception or a check of `weft doctor`: its cause, how to confirm it, and how to fix it.
 *
 * @internal
 */
final class ErrorDocumentation
{
    /** The address of a published version of the documentation, such as `https://docs.example.com/weft/0.2`. Without it, `weft explain` prints the page. */
    public const ADDRESS = 'WEFT_DOCS_URL';

    private function __construct(public readonly string $name) {}

    /** The page about an exception: about its class, or the first public class that it extends. Null for an exception that is not Weft's. */
    public static function of(\Throwable $thrown): ?self
    {
        if (!$thrown instanceof Exception) {
            return null;
        }
        for ($class = $thrown::class; $class !== false; $class = \get_parent_class($class)) {
            if (\str_starts_with($class, 'Weft\\') && !\str_contains($class, '\\Internal\\')) {
                return self::ofClass($class);
            }
        }

        return null;
    }

    /**
     * The package and the name without its ending: `pool-exhausted` for `Weft\Pool\PoolExhaustedException`, `sql-deadlock` for
     * `Weft\Sql\DeadlockException`.
     */
    public static function ofClass(string $class): self
    {
        $parts = \explode('\\', \substr($class, \strlen('Weft\\')));
        $name = self::kebab((string) \preg_replace('/(Exception|Error)$/', '', \array_pop($parts)));
        foreach (\array_reverse($parts) as $part) {
            $package = self::kebab($part);
            $name = match (true) {
                $name === '' => $package,
                $name === $package || \str_starts_with($name, "$package-") => $name,
                default => "$package-$name",
            };
        }

        return new self($name);
    }

    /** The page about a check of `weft doctor`, such as `doctor-open-files`. */
    public static function ofCheck(string $subject): self
    {
        return new self('doctor-' . \strtolower((string) \preg_replace('/[\W_]+/', '-', $subject)));
    }

    /** Where to read it: an address, or the command that prints it. */
    public function location(): string
    {
        $address = (string) \getenv(self::ADDRESS);

        return $address === '' ? "weft explain {$this->name}" : \rtrim($address, '/') . "/errors/{$this->name}/";
    }

    private static function kebab(string $name): string
    {
        return \strtolower((string) \preg_replace('/(?<=[a-z0-9])(?=[A-Z])/', '-', $name));
    }
}
