<?php

declare(strict_types=1);

namespace Weft\Bench\Report;

use Weft\Bench\BenchmarkException;
use Weft\Bench\Build;
use Weft\Bench\Grpc\BoundsResults;

/** The page of all results: one HTML file with its charts, its script and the raw results in it, made by bench/report. */
final class HtmlPage
{
    /** @param string $root the repository */
    public function __construct(private readonly string $root)
    {
    }

    /**
     * @param string|null $documentation relative address of the pages about the benchmarks, where the page is part of a site
     *
     * @throws BenchmarkException when there are no results, or Node.js or its packages cannot be had
     */
    public function write(Sources $sources, string $path, ?string $documentation = null): void
    {
        $results = $sources->load();
        $data = [
            'from' => $sources->name,
            'documentation' => $documentation,
            'titles' => Summary::TITLES,
            'tiles' => (new Summary($results))->tiles(),
            'bounds' => isset($results['grpc-bounds']) ? BoundsResults::of($results['grpc-bounds'])->toArray() : null,
            'results' => $results,
        ];
        Build::npm("{$this->root}/bench/report");
        $process = @proc_open(['node', "{$this->root}/bench/report/build.mjs", $path], [['pipe', 'r']], $pipes)
            ?: throw new BenchmarkException('cannot start node');
        fwrite($pipes[0], json_encode($data, JSON_THROW_ON_ERROR | JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES | JSON_PRESERVE_ZERO_FRACTION));
        fclose($pipes[0]);
        $code = proc_close($process);
        $code === 0 || throw new BenchmarkException("bench/report/build.mjs exited with code $code: it needs Node.js");
    }
}
