<?php

declare(strict_types=1);

namespace Weft\Bench\State\Laravel;

use Illuminate\Database\Eloquent\Model;

/** What a request writes in its transaction. */
final class Visit extends Model
{
    public $timestamps = false;

    public $incrementing = false;

    protected $table = 'state_visits';

    protected $primaryKey = 'request';

    protected $keyType = 'string';

    /** @var array<string> */
    protected $guarded = [];
}
