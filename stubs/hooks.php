<?php

declare(strict_types=1);

namespace Weft\Native;

/**
 * Chooses the blocking calls of libraries that suspend tasks from now on. Replaces the functions of libc in the libraries that have been
 * loaded since the last call.
 *
 * @param int $groups the sum of `weft_group` of hooks.h; 0 for none
 *
 * @return int the groups before
 *
 * @throws \Weft\Runtime\ForkedProcessError
 */
function switchHooks(int $groups): int
{
}

/** From now on libraries suspend the running fiber. */
function hookFiber(): void
{
}

/**
 * Whether a task that uses a handle of a library in which another task waits, such as a PDO, waits for its turn instead of getting a
 * {@see \Weft\Runtime\HandleInUseError}. False at the start of the process.
 *
 * @return bool whether it did before
 */
function queueForHandles(bool $queue): bool
{
}

/** @return array<string, list<string>> the replaced functions by the file name of the library */
function hookedFunctions(): array
{
}

/**
 * The loaded extensions whose functions block the process. Nothing would keep two tasks apart on a connection of theirs: Weft has no rules for them.
 *
 * @return list<string> their names; extensions that are compiled into PHP are never among them
 */
function blockingExtensions(): array
{
}

/**
 * Waits of libraries that have not ended, and the system calls that all waits so far have made to register their descriptors.
 *
 * @return array{pending: int, epoll_ctl: int}
 */
function hookCounters(): array
{
}

/**
 * Sleeps on a helper thread while the task is suspended, to prove that such calls are waited for and abandoned. Debug builds only.
 *
 * @return int `weft_end` of hooks.h
 */
function nap(int $microseconds): int
{
}
