<?php

declare(strict_types=1);

namespace Weft\Bench\Rinha;

use Weft\Bench\BenchmarkException;
use Weft\Bench\TimedOut;

/** The load generator: the project in bench/rinha/gatling, built by Maven. */
final class Gatling
{
    /** Of a whole run. */
    public const LOAD_SECONDS = 205;
    /** For the virtual machine's start, requests that wait for their time-out of a minute, and the report. */
    private const START_SECONDS = 180;

    /**
     * @param string $project directory with the pom.xml
     * @param string $out where the program, its results and its report go
     */
    public function __construct(private readonly string $project, private readonly string $out)
    {
    }

    /** @throws BenchmarkException */
    public function build(): void
    {
        $classpath = "-Dmdep.outputFile={$this->out}/maven/classpath";
        $command = ['mvn', '-B', '-q', '-f', "{$this->project}/pom.xml", 'compile', 'dependency:build-classpath', $classpath];
        passthru(implode(' ', array_map(escapeshellarg(...), $command)) . ' >&2', $code);
        $code === 0 || throw new BenchmarkException("mvn exited with code $code: it needs Maven, a JDK of version 17 or newer and Maven Central");
    }

    /**
     * @param float $scale 1 is {@see self::LOAD_SECONDS}
     *
     * @return string directory with simulation.log and index.html
     *
     * @throws BenchmarkException
     */
    public function run(string $url, Data $data, float $scale): string
    {
        $directory = "{$this->out}/gatling";
        exec('rm -rf ' . escapeshellarg($directory));
        $timeout = self::LOAD_SECONDS * $scale + self::START_SECONDS;
        $command = [
            'timeout', '--foreground', '--kill-after=5', (string) $timeout, 'java', '-Xms1g', '-Xmx1g', '-cp', "{$this->out}/maven/classes:" . trim(file_get_contents("{$this->out}/maven/classpath")),
            "-Drinha.url=$url", "-Drinha.payloads={$data->payloads}", "-Drinha.terms={$data->terms}", "-Drinha.scale=$scale",
            // It would report each run to its makers.
            '-Dgatling.http.enableGA=false',
            'io.gatling.app.Gatling', '--simulation', 'rinha.Rinha', '--results-folder', $directory, '--run-description', 'rinha',
        ];
        $line = implode(' ', array_map(escapeshellarg(...), $command));
        exec("$line >" . escapeshellarg("{$this->out}/gatling.log") . ' 2>&1', result_code: $code);
        $results = glob("$directory/*/simulation.log");
        !in_array($code, [124, 137], true) || throw new TimedOut("Gatling did not end within $timeout s, log: {$this->out}/gatling.log");
        if ($code !== 0 || $results === []) {
            throw new BenchmarkException("Gatling exited with code $code, log: {$this->out}/gatling.log");
        }

        return dirname($results[0]);
    }
}
