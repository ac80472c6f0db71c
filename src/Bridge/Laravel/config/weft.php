<?php

declare(strict_types=1);

return [
    /*
     * The address that `artisan weft:serve` listens on: host and port, or unix:/path/to/socket.
     */
    'listen' => env('WEFT_LISTEN', '127.0.0.1:8000'),

    /*
     * Worker processes, or "auto": one for each CPU.
     */
    'workers' => 1,

    /*
     * Requests of a worker at the same time, each in an application of its own. Null: as many as memory allows, at most 32.
     */
    'applications' => env('WEFT_APPLICATIONS'),

    /*
     * Seconds that a request waits for an application before it is answered 503.
     */
    'application_wait' => env('WEFT_APPLICATION_WAIT', 5.0),

    /*
     * An application is replaced after so many requests, seconds, or while PHP uses so many bytes, such as 256M; 0: never.
     */
    'application_requests' => env('WEFT_APPLICATION_REQUESTS', 0),
    'application_age' => env('WEFT_APPLICATION_AGE', 0),
    'application_memory' => env('WEFT_APPLICATION_MEMORY', 0),

    /*
     * Whether a request is cancelled when its client disconnects. False: it runs to its end, as under PHP-FPM.
     */
    'cancel_on_disconnect' => env('WEFT_CANCEL_ON_DISCONNECT', false),

    /*
     * Whether files in public/ are served. Switch it off where a web server in front does that.
     */
    'public' => env('WEFT_PUBLIC', true),

    /*
     * Static properties of the application and its packages that hold something of a request, as 'App\Tenant::current'. Each application
     * has its own value of them. Those of Laravel are known.
     */
    'isolate' => [],

    /*
     * Services that are resolved while the application boots and must be made anew for each request.
     */
    'flush' => [],

    'database' => [
        /*
         * Whether connections with the drivers pgsql, mysql, mariadb and sqlite run on Weft's pools.
         */
        'enabled' => env('WEFT_DATABASE', true),

        /*
         * Options of the pools: size, sizeTotal, minimumIdle, name. A connection has its own by 'pool' in config/database.php.
         */
        'pool' => ['size' => env('WEFT_POOL_SIZE', 20)],
    ],

    /*
     * The bus of the queue driver "weft": amqp://user:password@host, postgres://…, sqlite:/path/to/file.
     */
    'bus' => env('WEFT_BUS'),
];
