<?php

declare(strict_types=1);

/*
 * Runs a program of PHP inside a task, as if it were the main program: run.php FILE [ARGUMENT…]. WEFT_HOOKS chooses the hooks.
 *
 * The program shares its global variables with the functions that it defines: every name that its directory mentions becomes a reference to the
 * global variable. So `isset()` finds them as before, but `get_defined_vars()` lists more.
 */

require __DIR__ . '/../../../autoload.php';

array_shift($argv);
$argc = count($argv);
[$_SERVER['argv'], $_SERVER['argc']] = [$argv, $argc];
$_SERVER['SCRIPT_NAME'] = $_SERVER['SCRIPT_FILENAME'] = $_SERVER['PATH_TRANSLATED'] = $_SERVER['PHP_SELF'] = $argv[0];

/** @return list<string> the names of variables that the program and the files beside it mention */
function variablesOf(string $program): array
{
    $names = [];
    foreach ([$program, ...(glob(dirname($program) . '/*.inc') ?: [])] as $file) {
        preg_match_all('/\$(\w+)/', (string) file_get_contents($file), $found);
        $names += array_flip($found[1]);
    }
    unset($names['this'], $names['GLOBALS']);

    return array_filter(array_map(strval(...), array_keys($names)), static fn(string $name): bool => !preg_match('/^_[A-Z]+$/', $name));
}

Weft\run(static function (): void {
    foreach (variablesOf((string) realpath($GLOBALS['argv'][0])) as $__name) {
        $$__name = &$GLOBALS[$__name];
    }
    unset($__name);
    require $GLOBALS['argv'][0];
});
