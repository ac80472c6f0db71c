<?php

declare(strict_types=1);

namespace Weft\Internal;

use Weft\Version;

/**
 * The extension of this process beside the library: both must have the same version and, because that does not change between releases, the
 * same interface hash.
 *
 * @internal
 */
final class LoadedExtension
{
    /**
     * @param string $root the directory of the library
     * @param string|null $file from which PHP has loaded the extension, null if that is unknown
     */
    public function __construct(private readonly string $root, private readonly ?string $file)
    {
    }

    public static function ofThisProcess(): self
    {
        // A file that was replaced since has the suffix " (deleted)".
        \preg_match('{^(?:\S+\s+){5}(/.*/(?:lib)?weft\.so)(?: \(deleted\))?$}m', (string) @\file_get_contents('/proc/self/maps'), $found);

        return new self(\dirname(__DIR__, 2), $found[1] ?? null);
    }

    /** Why the library refuses the extension of this process and what to do; null if it does not. Only then is its file looked for: every start asks. */
    public static function problem(): ?string
    {
        $loaded = Version::extension();

        return match (true) {
            $loaded === null => 'Weft needs the PHP extension weft, which is not loaded. ' . self::ofThisProcess()->missing(),
            $loaded !== Version::LIBRARY => 'Weft library ' . Version::LIBRARY . " does not match the loaded extension {$loaded}. " . self::ofThisProcess()->advice(),
            Version::extensionInterfaceHash() !== Version::INTERFACE_HASH => 'Weft library ' . Version::LIBRARY . ' with the interface hash ' . Version::INTERFACE_HASH
                . ' does not match the loaded extension with ' . (Version::extensionInterfaceHash() ?? 'none') . '. They were built from different sources. ' . self::ofThisProcess()->advice(),
            default => null,
        };
    }

    /** @throws \Error the library refuses the extension of this process */
    public static function require(): void
    {
        $problem = self::problem();
        $problem === null || throw Origin::place(new \Error("{$problem}. Details: " . \dirname(__DIR__, 2) . '/bin/weft doctor'));
    }

    /** The newer of the two builds of a source checkout; null without one. */
    public static function build(string $root): ?string
    {
        if (!\is_file("$root/Cargo.toml")) {
            return null;
        }
        $builds = \array_filter(["$root/target/release/libweft.so", "$root/target/debug/libweft.so"], \is_file(...));
        \usort($builds, static fn(string $a, string $b): int => (int) \filemtime($b) <=> (int) \filemtime($a));

        return $builds[0] ?? null;
    }

    /** How to load one where none is loaded. */
    public function missing(): string
    {
        $build = self::build($this->root);

        return match (true) {
            \is_file("{$this->root}/install") => "Run `sudo {$this->root}/install`, which installs the extension of this archive",
            $build !== null => "Start an application with `{$this->root}/bin/weft run app.php`, which loads it, and other programs with `php -d extension={$build}`, "
                . "or install it with `sudo make install` in {$this->root}",
            \is_file("{$this->root}/Cargo.toml") => "Run `make build` in {$this->root}, then start an application with `{$this->root}/bin/weft run app.php`, which loads it",
            default => 'Install it with `pie install weft/ext-weft:' . Version::LIBRARY . '`; if it is installed, add the line extension=weft to '
                . (\php_ini_loaded_file() ?: 'php.ini'),
        };
    }

    /** How to get an extension that matches. */
    public function advice(): string
    {
        $build = "{$this->root}/target";

        return match (true) {
            \is_file("{$this->root}/install") => "Run `sudo {$this->root}/install`, which installs the extension of this archive",
            !\is_file("{$this->root}/Cargo.toml") => 'Install the same version of both: pie install weft/ext-weft:' . Version::LIBRARY . ', or the same archive',
            $this->file !== null && \str_starts_with($this->file, "{$build}/debug/") => "Run `make build-debug` in {$this->root}",
            $this->file !== null && \str_starts_with($this->file, "{$build}/") => "Run `make build` in {$this->root}",
            // Only the installed file has this name.
            $this->file === null || \basename($this->file) === 'weft.so' => "Run `sudo make install` in {$this->root}: PHP has loaded " . ($this->file ?? 'an installed extension') . ', which `make build` does not replace',
            default => "Run `make build` in {$this->root}, and load {$build}/release/libweft.so in place of {$this->file}",
        };
    }
}
