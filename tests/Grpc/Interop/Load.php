<?php

declare(strict_types=1);

namespace Weft\Tests\Grpc\Interop;

use Weft\Grpc\Call;
use Weft\Tests\Grpc\Interop\Generated\OpenRcaService;
use Weft\Tests\Grpc\Interop\Generated\OrcaLoadReport;
use Weft\Tests\Grpc\Interop\Generated\OrcaLoadReportRequest;

use function Weft\delay;

/** Reports the load that a call of the other service said there is. */
final class Load implements OpenRcaService
{
    public function __construct(public OrcaLoadReport $report = new OrcaLoadReport())
    {
    }

    public function streamCoreMetrics(OrcaLoadReportRequest $request, Call $call): iterable
    {
        while (true) {
            yield $this->report;
            delay(0.1);
        }
    }
}
