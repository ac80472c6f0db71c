<?php

declare(strict_types=1);

namespace Weft\Grpc;

/** How a call ended: the codes every gRPC implementation knows. */
enum Status: int
{
    case Ok = 0;
    /** By the caller, usually. */
    case Cancelled = 1;
    /** Also what a handler's own exception becomes. */
    case Unknown = 2;
    /** Whatever the state of the system is; compare FailedPrecondition. */
    case InvalidArgument = 3;
    case DeadlineExceeded = 4;
    case NotFound = 5;
    case AlreadyExists = 6;
    /** The caller is known and may not; compare Unauthenticated. */
    case PermissionDenied = 7;
    case ResourceExhausted = 8;
    /** Not in this state of the system: do not try again before that has changed. */
    case FailedPrecondition = 9;
    /** A conflict: try the whole transaction again. */
    case Aborted = 10;
    case OutOfRange = 11;
    case Unimplemented = 12;
    case Internal = 13;
    /** Try again later. */
    case Unavailable = 14;
    case DataLoss = 15;
    case Unauthenticated = 16;
}
