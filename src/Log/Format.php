<?php

declare(strict_types=1);

namespace Weft\Log;

/** The format of log records. */
enum Format: string
{
    /** `2026-11-21T12:00:00.000Z info  worker 1 is ready {"pid":4711}` */
    case Text = 'text';
    /** One JSON object with `time`, `level`, `message` and the context. */
    case Json = 'json';
}
