<?php

declare(strict_types=1);

namespace Weft\Tests\Packaging;

use PHPUnit\Framework\TestCase;

/** What the Debian package does to the configuration of PHP, in a mount namespace of its own: nothing of the system changes. */
final class DebianTest extends TestCase
{
    private string $directory;
    private string $php;

    protected function setUp(): void
    {
        $this->php = \PHP_MAJOR_VERSION . '.' . \PHP_MINOR_VERSION;
        if (!\is_dir("/etc/php/{$this->php}/mods-available") || !\is_dir('/var/lib/php/modules') || !\is_executable('/usr/sbin/phpenmod')) {
            self::markTestSkipped('This PHP is not a package of Debian');
        }
        \exec('unshare -m true 2>&1', $output, $code);
        $code === 0 || self::markTestSkipped('Needs the right to make a mount namespace');
        $this->directory = \sys_get_temp_dir() . '/weft-debian-' . \bin2hex(\random_bytes(6));
        \mkdir($this->directory);
        foreach (['postinst', 'prerm'] as $script) {
            \file_put_contents("{$this->directory}/{$script}", \str_replace('@PHP@', $this->php, (string) \file_get_contents(self::root() . "/packaging/debian/{$script}")));
        }
    }

    protected function tearDown(): void
    {
        isset($this->directory) && \exec('rm -rf ' . \escapeshellarg($this->directory));
    }

    public function testAnUpgradeLeavesDisabledWhatTheAdministratorHasDisabled(): void
    {
        self::assertSame(
            ['20-weft.ini', 'disabled', 'none', 'upgraded', 'none', 'removed and installed', 'none', 'enabled', '20-weft.ini'],
            $this->said(<<<'SH'
                sh postinst configure; shown
                phpdismod -v $php -s cli weft; echo disabled; shown
                sh postinst configure 0.1.0; echo upgraded; shown
                sh prerm remove; sh postinst configure; echo removed and installed; shown
                phpenmod -v $php -s cli weft; echo enabled; shown
                SH),
        );
    }

    public function testWhatThePackageHasDisabledItEnablesAgain(): void
    {
        self::assertSame(['20-weft.ini', 'removed', 'none', 'installed', '20-weft.ini'], $this->said(<<<'SH'
            sh postinst configure; shown
            sh prerm remove; echo removed; shown
            sh postinst configure; echo installed; shown
            SH));
    }

    public function testTheInstallerOfAnArchiveLeavesDisabledWhatTheAdministratorHasDisabled(): void
    {
        $said = $this->said(<<<'SH'
            extensions=$(php -n -r 'echo PHP_EXTENSION_DIR;')
            cp -a $extensions extensions
            mount --bind extensions $extensions
            "$installer" "$extension"; shown
            phpdismod -v $php -s cli weft; shown
            "$installer" "$extension"; shown
            "$installer" --remove; shown
            SH);

        self::assertSame(['20-weft.ini', 'none', 'none', 'none'], \array_values(\preg_grep('/^(none|20-weft\.ini)$/', $said) ?: []));
        self::assertCount(2, \preg_grep('/^installed /', $said) ?: []);
        self::assertCount(1, \preg_grep("/^it stays disabled for the command line: phpenmod -v {$this->php} -s cli weft$/", $said) ?: []);
    }

    /** What one of two installers writes, the other would overwrite or delete. */
    public function testTheInstallerOfAnArchiveLeavesTheFilesOfAPackageAlone(): void
    {
        if (\shell_exec('command -v dpkg-deb') === null) {
            self::markTestSkipped('dpkg-deb is missing');
        }
        $said = $this->said(<<<'SH'
            extensions=$(php -n -r 'echo PHP_EXTENSION_DIR;')
            cp -a $extensions extensions
            mount --bind extensions $extensions
            rm -f etc/$php/mods-available/weft.ini extensions/weft.so
            mkdir -p package/DEBIAN package$extensions package/etc/php/$php/mods-available database/info database/updates
            printf 'Package: php%s-weft\nVersion: 1\nArchitecture: all\nMaintainer: nobody\nDescription: test\n' $php >package/DEBIAN/control
            echo /etc/php/$php/mods-available/weft.ini >package/DEBIAN/conffiles
            echo extension of the package >package$extensions/weft.so
            echo "; of the package" >package/etc/php/$php/mods-available/weft.ini
            dpkg-deb --root-owner-group --build package weft.deb >/dev/null
            # An empty database of packages takes the place of the system's.
            touch database/status
            export DPKG_ADMINDIR=$PWD/database
            dpkg --log=/dev/null --install weft.deb >/dev/null
            refused() { if "$installer" "$@" 2>said; then echo accepted; else cat said; fi; }
            refused "$extension"; refused --remove
            cat $extensions/weft.so
            dpkg --log=/dev/null --remove php$php-weft >/dev/null; echo removed
            refused "$extension"; refused --remove
            dpkg --log=/dev/null --purge php$php-weft >/dev/null; echo purged
            "$installer" "$extension"; shown
            SH);

        $php = $this->php;
        $library = \PHP_EXTENSION_DIR . '/weft.so';
        $ini = "/etc/php/$php/mods-available/weft.ini";
        $refusal = static fn(string $file): string => "install: $file belongs to the package php$php-weft, nothing was changed. To remove the package and its ini file: apt purge php$php-weft";
        self::assertSame([
            $refusal($library), $refusal($library), 'extension of the package',
            'removed', $refusal($ini), $refusal($ini),
            'purged', "installed $library and $ini", '20-weft.ini',
        ], $said);
    }

    /** @return list<string> */
    private function said(string $commands): array
    {
        $installer = \escapeshellarg(self::root() . '/packaging/install');
        \preg_match('{\S+/libweft\.so}', (string) \file_get_contents('/proc/self/maps'), $loaded);
        $extension = \escapeshellarg($loaded[0] ?? 'weft.so');
        $ini = \escapeshellarg(self::root() . '/packaging/weft.ini');
        $script = <<<SH
            set -e
            php={$this->php}
            installer={$installer}
            extension={$extension}
            cd {$this->directory}
            cp -a /etc/php etc
            cp -a /var/lib/php/modules modules
            mount --bind etc /etc/php
            mount --bind modules /var/lib/php/modules
            find etc modules -name '*weft*' -delete
            cp {$ini} etc/\$php/mods-available/weft.ini
            shown() { ls /etc/php/\$php/cli/conf.d | grep weft || echo none; }
            {$commands}
            SH;
        \exec('unshare -m sh -c ' . \escapeshellarg($script) . ' 2>/dev/null', $output, $code);
        self::assertSame(0, $code, \implode("\n", $output));

        return $output;
    }

    private static function root(): string
    {
        return \dirname(__DIR__, 2);
    }
}
