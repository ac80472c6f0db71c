<?php

declare(strict_types=1);

namespace Weft\Grpc;

/** The status codes of gRPC. */
enum Status: int
{
    case Ok = 0;
    /** Cancelled, usually by the caller. */
    case Cancelled = 1;
    /** Also the status of a handler that throws another exception. */
    case Unknown = 2;
    /** The argument is invalid regardless of the system's state; compare FailedPrecondition. */
    case InvalidArgument = 3;
    case DeadlineExceeded = 4;
    case NotFound = 5;
    case AlreadyExists = 6;
    /** The caller is known but not permitted; compare Unauthenticated. */
    case PermissionDenied = 7;
    case ResourceExhausted = 8;
    /** The system is not in the required state: do not retry until that has changed. */
    case FailedPrecondition = 9;
    /** A conflict: retry the whole transaction. */
    case Aborted = 10;
    case OutOfRange = 11;
    case Unimplemented = 12;
    case Internal = 13;
    /** Retry with backoff. */
    case Unavailable = 14;
    case DataLoss = 15;
    case Unauthenticated = 16;
}
