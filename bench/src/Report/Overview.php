<?php

declare(strict_types=1);

namespace Weft\Bench\Report;

use Weft\Bench\Page;

/** The summary of all published results in Markdown. */
final class Overview
{
    /** @param array<string, array<string, mixed>> $results see {@see Sources::load()} */
    public function __construct(private readonly array $results)
    {
    }

    /** One row for each benchmark that has published results. */
    public function table(): string
    {
        $rows = '';
        foreach (array_filter((new Summary($this->results))->tiles()) as $benchmark => $tile) {
            $rows .= '| ' . Summary::TITLES[$benchmark] . " | **{$tile->value}** {$tile->claim} | {$tile->detail} |\n";
        }

        return "| | | |\n|---|---|---|\n$rows";
    }

    /** Machine, versions and date of each. */
    public function origins(): string
    {
        $lines = '';
        foreach (array_intersect_key($this->results, Summary::TITLES) as $benchmark => $result) {
            $date = isset($result['date']) ? ', ' . substr($result['date'], 0, 10) : '';
            $lines .= '- ' . Summary::TITLES[$benchmark] . ": {$result['machine']}; " . Page::versions($result['versions']) . "$date.\n";
        }

        return $lines;
    }

    /** Links to the pages that exist only once there are results. */
    public function more(): string
    {
        $links = '';
        foreach (['grpc', 'pool', 'scale'] as $benchmark) {
            $links .= isset($this->results[$benchmark]) ? ", [$benchmark]($benchmark/README.md)" : '';
        }

        return $links;
    }
}
